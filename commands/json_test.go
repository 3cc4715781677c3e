package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

const jsonPage = "../docs/json.md"

// printed are the types that are printed as JSON, by their headings in docs/json.md.
// What one type embeds of another has a heading of its own.
var printed = map[string]reflect.Type{
	"Every snapshot":                      reflect.TypeFor[summary](),
	"Every result":                        reflect.TypeFor[outcome](),
	"An error":                            reflect.TypeFor[failure](),
	"problems":                            reflect.TypeFor[problem](),
	"create":                              reflect.TypeFor[createResult](),
	"create: skipped":                     reflect.TypeFor[skippedResult](),
	"fork":                                reflect.TypeFor[forkResult](),
	"promote":                             reflect.TypeFor[struct{ restoreResult }](),
	"undo":                                reflect.TypeFor[struct{ restoreResult }](),
	"fork: ports":                         reflect.TypeFor[publishedPort](),
	"restore":                             reflect.TypeFor[restoreResult](),
	"ls":                                  reflect.TypeFor[listed](),
	"ls --lost":                           reflect.TypeFor[lostSnapshot](),
	"protect":                             reflect.TypeFor[protectResult](),
	"inspect":                             reflect.TypeFor[details](),
	"diff":                                reflect.TypeFor[fileChange](),
	"changes":                             reflect.TypeFor[changeReport](),
	"diff --stat":                         reflect.TypeFor[changeCount](),
	"inspect --files":                     reflect.TypeFor[file](),
	"cat":                                 reflect.TypeFor[catResult](),
	"annotate":                            reflect.TypeFor[annotateResult](),
	"rm":                                  reflect.TypeFor[removeResult](),
	"verify":                              reflect.TypeFor[verifyResult](),
	"verify: findings":                    reflect.TypeFor[verifyFinding](),
	"rm --copies":                         reflect.TypeFor[removeCopiesResult](),
	"rm --force":                          reflect.TypeFor[missingResult](),
	"prune":                               reflect.TypeFor[pruneResult](),
	"prune: the last line":                reflect.TypeFor[pruneTotal](),
	"recover":                             reflect.TypeFor[recoverResult](),
	"recover --purge":                     reflect.TypeFor[purgeResult](),
	"version":                             reflect.TypeFor[versions](),
	"--progress json":                     reflect.TypeFor[progressLine](),
	"not_captured":                        reflect.TypeFor[notCaptured](),
	"plan":                                reflect.TypeFor[planStep](),
	"volume_changes":                      reflect.TypeFor[volumeChange](),
	"config_changes":                      reflect.TypeFor[configChange](),
	"mounts":                              reflect.TypeFor[mountDetails](),
	"mounts: archive: excluded":           reflect.TypeFor[exclusionDetails](),
	"mounts: archive":                     reflect.TypeFor[archiveDetails](),
	"attachments":                         reflect.TypeFor[attachmentDetails](),
	"runs":                                reflect.TypeFor[runSummary](),
	"runs ls":                             reflect.TypeFor[runSummary](),
	"df":                                  reflect.TypeFor[dfResult](),
	"df: what some occupy":                reflect.TypeFor[occupied](),
	"df: groups":                          reflect.TypeFor[groupUsage](),
	"df: snapshots":                       reflect.TypeFor[snapshotUsage](),
	"df: stores":                          reflect.TypeFor[storeUsage](),
	"df: limits":                          reflect.TypeFor[limitUsage](),
	"history":                             reflect.TypeFor[historyEntry](),
	"history: changed_volumes":            reflect.TypeFor[changedVolume](),
	"history: standing":                   reflect.TypeFor[standing](),
	"inspect: restores":                   reflect.TypeFor[restoreDetails](),
	"runs inspect":                        reflect.TypeFor[runDetails](),
	"runs inspect: volumes and binds":     reflect.TypeFor[sessionMount](),
	"runs inspect: snapshots":             reflect.TypeFor[sessionSnapshot](),
	"runs inspect: restores":              reflect.TypeFor[sessionRestore](),
	"runs inspect: engine_network_events": reflect.TypeFor[sessionNetworkEvent](),
	"watch":                               reflect.TypeFor[watchLine](),
}

// key is one key of a JSON object.
type key struct{ name, kind string }

// jsonKind is the type of a value as docs/json.md calls it.
func jsonKind(t reflect.Type) string {
	if t.Kind() == reflect.Pointer && (t.Elem().Kind() == reflect.Int || t.Elem().Kind() == reflect.Float64) { // null, if there is none
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "list"
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Interface:
		return "object"
	}
	return "number"
}

// keysOf are the keys of a struct, without those that it embeds, and the structs that are in it.
func keysOf(t *testing.T, object reflect.Type) (keys []key, inner []reflect.Type) {
	t.Helper()
	for field := range object.Fields() {
		if field.Anonymous {
			inner = append(inner, field.Type)
			continue
		}
		name := field.Tag.Get("json")
		assert.Assert(t, snakeCase.MatchString(name), "%s.%s is %q in JSON", object, field.Name, name)
		assert.Equal(t, field.Name, goSpelling(name), "the field of %s for templates is not called as its key", object)
		keys = append(keys, key{name, jsonKind(field.Type)})
		for field.Type.Kind() == reflect.Slice || field.Type.Kind() == reflect.Pointer {
			field.Type = field.Type.Elem()
		}
		if field.Type.Kind() == reflect.Struct {
			inner = append(inner, field.Type)
		}
	}
	return keys, inner
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// goSpelling is a key as Go and templates spell it.
func goSpelling(name string) string {
	var spelled string
	for part := range strings.SplitSeq(name, "_") {
		if slices.Contains([]string{"id", "ms", "uid", "gid", "rw", "sha256"}, part) {
			spelled += strings.ToUpper(part)
		} else {
			spelled += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return spelled
}

// sections are the parts of docs/json.md by their headings.
func sections(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(jsonPage)
	assert.NilError(t, err)
	found := map[string]string{}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		found[heading] = text
	}
	return found
}

var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\w+) \\|")

func TestEveryKeyIsDocumented(t *testing.T) {
	documented := sections(t)
	for heading, object := range printed {
		keys, inner := keysOf(t, object)
		var described []key
		for _, row := range tableRow.FindAllStringSubmatch(documented[heading], -1) {
			described = append(described, key{row[1], row[2]})
		}
		assert.Assert(t, slices.Equal(described, keys), "the section %q of %s describes %v, and %s has %v", heading, jsonPage, described, object, keys)
		for _, other := range inner {
			assert.Assert(t, slices.ContainsFunc(headings(), func(h string) bool { return printed[h] == other }), "%s is not described", other)
		}
	}
	for heading := range documented {
		_, known := printed[heading]
		assert.Assert(t, known, "the section %q of %s describes nothing that is printed", heading, jsonPage)
	}
}

func headings() []string {
	var list []string
	for heading := range printed {
		list = append(list, heading)
	}
	slices.Sort(list)
	return list
}

func TestAKeyHasOneTypeEverywhere(t *testing.T) {
	types := map[string]key{}
	for _, heading := range headings() {
		keys, _ := keysOf(t, printed[heading])
		for _, k := range keys {
			if first, known := types[k.name]; known {
				assert.Assert(t, k.kind == first.kind || k.name == "started", "%s of %s", k.name, heading) // of a run it is a time
			}
			types[k.name] = k
		}
	}
}

// Whatever ls prints as JSON can be a column, too.
func TestEveryFieldHasAHeader(t *testing.T) {
	for _, object := range []reflect.Type{reflect.TypeFor[summary](), reflect.TypeFor[listed]()} {
		for field := range object.Fields() {
			assert.Assert(t, field.Anonymous || headers[field.Name] != "", "%s has no header", field.Name)
		}
	}
}

// printingEngine answers what fakeEngine does not.
type printingEngine struct {
	fakeEngine
	replaced replace.Result
	replace  replace.Options
	undoes   []replace.Options // what FindUndo finds
}

func (e *printingEngine) Replace(_ context.Context, o replace.Options, _ plan.Progress) (replace.Result, error) {
	e.replace = o
	return e.replaced, e.err
}

func (e *printingEngine) FindUndo(_ context.Context, container string) ([]replace.Options, error) {
	if len(e.undoes) == 0 {
		return nil, &replace.NoUndoError{Container: container, Reason: "container " + container + " was not restored in place"}
	}
	return e.undoes, e.err
}

func (e *printingEngine) Recover(context.Context, string, plan.Progress) ([]replace.Recovery, error) {
	return []replace.Recovery{{Container: "web", Text: "put back as it was before the restore of " + string(firstID)}}, nil
}

func (e *printingEngine) Verify(context.Context, verify.Options, plan.Progress) (verify.Report, error) {
	return verify.Report{Results: []verify.Result{{
		Word: "cua-snapshot/db:" + string(firstID), Snapshot: firstSnapshot(),
		Findings: []verify.Finding{{Where: "volume data", Text: "the copy of \"table\" in snapshots/20260314-092653-58979a/0.tar at offset 1536 is damaged: its SHA-256 is not what it was"}},
	}}}, nil
}

func (e *printingEngine) FindPurgeable(context.Context, plan.Progress) ([]removal.Purgeable, []string, error) {
	return []removal.Purgeable{{Kind: removal.PurgeStore, Name: "cua-snapshots"}}, nil, nil
}

func (e *printingEngine) Purge(_ context.Context, all []removal.Purgeable, _ plan.Progress) ([]removal.Purgeable, error) {
	return all, nil
}

func (e *printingEngine) Entries(_ context.Context, _ catalog.Snapshot, _ labels.Mount, _ archives.Detail, visit func(volumebackup.Entry)) error {
	visit(volumebackup.Entry{
		Path: "bin/link", Kind: "l", Mode: 0o777, UID: 1000, GID: 1000,
		Modified: noon.Add(-time.Hour), Target: "/bin/busybox", Xattrs: []string{"user.origin"},
	})
	return nil
}

func (e *printingEngine) Sessions(context.Context) ([]session.Session, error) {
	status := 0
	return []session.Session{{
		RunID: "42", Command: []string{"./agent.py", "--fast"}, Container: "web", ContainerID: strings.Repeat("c0ffee", 11)[:64],
		Volumes: []session.Mount{{Name: "data", Destination: "/data"}}, Binds: []session.Mount{{Source: "/srv", Destination: "/srv"}},
		Interval: "run_boundaries", Started: noon.Add(-time.Minute), Ended: noon, ExitCode: &status, Status: session.StatusCompleted, Next: 2,
		Snapshots: []session.Snapshot{
			{Number: 0, ID: firstID, Trigger: labels.TriggerRunStart, Container: "web", Root: strings.Repeat("0f", 32)},
			{Number: 1, ID: secondSnapshot().ID, Trigger: labels.TriggerRunEnd, Container: "web"},
		},
		Restores:      []session.Restore{{At: noon.Add(-time.Second), Snapshot: firstID, Safety: secondSnapshot().ID, Status: session.OutcomeRestored}},
		EngineNetwork: []session.NetworkEvent{{At: noon.Add(-2 * time.Second), Action: "connect", Network: "front"}},
		NetworkEvents: json.RawMessage(`[{"host":"example.org","allowed":true}]`),
	}}, nil
}

func (e *printingEngine) Session(ctx context.Context, _ string) (session.Session, error) {
	all, err := e.Sessions(ctx)
	return all[0], err
}

func somethingReplaced() replace.Result {
	restored, safety := restoredCopy(), secondSnapshot()
	safety.Container = restored.Snapshot.Container
	restored.Name = "web"
	return replace.Result{
		Restored: restored, Safety: &safety,
		Volumes: []replace.VolumeChange{
			{Volume: "data", Created: replace.Count{Entries: 2, Bytes: 4096}, Changed: replace.Count{Entries: 1, Bytes: 100}},
			{Volume: "cache", Kept: "its content is not in the snapshot"},
		},
		Config: []runconfig.ConfigChange{{What: runconfig.ConfigImage, Verb: "change", Now: "nginx:1.30", Then: "nginx:1.29"}},
	}
}

func someOutlook(s catalog.Snapshot) removal.Outlook {
	one := space.Occupied{
		Snapshots: 1, Archived: 1, Logical: 40_000_000,
		Images: space.Share{Unique: 1_000_000, Shared: 190_000_000}, Archives: space.Share{Unique: 9_000_000, Shared: 500_000},
	}
	web := one
	web.Group = "web"
	return removal.Outlook{
		Report: space.Report{
			All: one, Groups: []space.Occupied{web}, Snapshots: []catalog.Snapshot{s}, Each: []space.Occupied{one},
			Stores: []archives.Holding{{Store: "cua-snapshots", Usage: volumebackup.Usage{Total: 9_600_000, Holes: 2_000_000}}},
		},
		Uses: []retention.Use{
			{Limit: retention.NameMaxSnapshots, Line: "api", Used: 1, Most: 10},
			{Limit: retention.NameMaxSnapshots, Line: "web", Used: 7, Most: 10},
			{Limit: retention.NameRetentionDays, Line: "web", Used: 216_000, Most: 604_800},
			{Limit: retention.NameMaxSize, Used: 9_500_000, Most: 10_000_000_000},
		},
		Prunable: 2, Frees: 3_000_000,
	}
}

// What commands print as JSON is a contract: docs/json.md shows the same as examples, which
// go test ./commands -update brings up to date.
func TestWhatIsPrintedAsJSON(t *testing.T) {
	for heading, args := range map[string]string{
		"create":          "create web --changes --format json",
		"restore":         "restore --replace --force before --format json",
		"ls":              "ls --format json",
		"inspect":         "inspect --format json before",
		"df":              "df --verbose --by container --format json",
		"history":         "history web --format json",
		"inspect --files": "inspect --files before --format json",
		"rm":              "rm --force before --format json",
		"verify":          "verify --all --format json",
		"prune":           "prune --force --format json",
		"recover":         "recover --format json",
		"recover --purge": "recover --purge --force --format json",
		"version":         "version --format json",
		"An error":        "rm gone --format json",
		"rm --force":      "rm --force gone --format json",
		"runs":            "runs --format json",
		"runs ls":         "runs ls --format json",
		"runs inspect":    "runs inspect 42",
		"--progress json": "create web --quiet --progress json",

		"prune: the last line": "prune --force --format json",
	} {
		t.Run(heading, func(t *testing.T) {
			f := newFixture()
			eng := &printingEngine{replaced: somethingReplaced()}
			shown := firstSnapshot()
			shown.Store = "cua-snapshots"
			shown.Layers = []string{"sha256:" + strings.Repeat("ab", 32)}
			shown.Config = labels.Config{
				Config:     json.RawMessage(`{"Env":["A=1"],"Image":"nginx:1.29"}`),
				HostConfig: json.RawMessage(`{"Memory":67108864}`),
			}
			eng.list = []catalog.Snapshot{shown}
			eng.restores = []catalog.Restore{{
				Snapshot: firstID, At: noon.Add(-time.Second), Container: "web", ContainerID: strings.Repeat("01", 32), InPlace: true, Safety: secondSnapshot().ID, RunID: "42",
			}}
			eng.pruned = removal.Pruned{Freed: 3_000_000, All: []removal.Pruning{
				{Snapshot: shown, Decision: retention.Decision{Removed: true, Reason: retention.TooOld, Detail: "older than 7 days"}},
			}}
			eng.outlook = someOutlook(shown)
			eng.created = capture.Created{Snapshot: shown, Frozen: 120 * time.Millisecond}
			eng.changes = someChanges()[1:2]
			f.evil = eng
			out := &f.stdout
			if heading == "--progress json" {
				eng.events = []plan.Event{{Level: plan.LevelWarning, Phase: "volumes", Text: "/data/socket is lost"}}
				out = &f.stderr
			}
			f.run(t, strings.Fields(args)...)
			text := strings.NewReplacer(runtime.Version(), "go1.26.0", runtime.GOOS+"/"+runtime.GOARCH, "linux/amd64").Replace(out.String())
			if lines := strings.SplitAfter(text, "\n"); heading == "prune" || heading == "history" {
				text = lines[0]
			} else if heading == "prune: the last line" {
				text = lines[len(lines)-2]
			}
			golden.Assert(t, text, "json-"+fileName(heading)+".golden")
			checkExample(t, heading, text)
		})
	}
}

// fileName is a heading as the name of a file.
func fileName(heading string) string {
	return strings.Trim(strings.ReplaceAll(strings.NewReplacer(" ", "-", ":", "").Replace(strings.ToLower(heading)), "--", ""), "-")
}

var example = regexp.MustCompile("(?s)```json\n(.*?)```")

// checkExample compares the example in a section of docs/json.md, or with -update writes it.
func checkExample(t *testing.T, heading, text string) {
	t.Helper()
	var want bytes.Buffer
	assert.NilError(t, json.Indent(&want, []byte(text), "", "  "))
	section := sections(t)[heading]
	found := example.FindStringSubmatch(section)
	assert.Assert(t, found != nil, "section %q has no example", heading)
	if golden.FlagUpdate() {
		page, err := os.ReadFile(jsonPage)
		assert.NilError(t, err)
		updated := strings.Replace(section, found[0], "```json\n"+want.String()+"```", 1)
		assert.NilError(t, os.WriteFile(jsonPage, []byte(strings.Replace(string(page), section, updated, 1)), 0o644))
		return
	}
	assert.Equal(t, found[1], want.String())
}
