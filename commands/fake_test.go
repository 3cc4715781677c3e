package commands

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/streams"
	"github.com/docker/docker/api/types/container"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/history"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
)

// fakeEngine records what it is asked for and answers with what it is given.
type fakeEngine struct {
	diff    diff.Options
	source  extract.Source
	path    string
	files   [2]extract.File // what Contents finds
	dest    string
	changes []diff.Change
	diffErr error
	engine  // panics on what a test does not expect

	created  capture.Created
	restored build.Restored
	list     []catalog.Snapshot
	lost     []archives.Lost
	restores []catalog.Restore
	running  []container.Summary
	events   []plan.Event // told before the answer
	err      error

	create    capture.Options
	together  []capture.Options
	annotated capture.Annotation
	attached  []string // names and contents of its attachments
	restore   runconfig.RestoreOptions
	listed    catalog.ListOptions
	removed   []string
	// containers are those that create finds; nil: any.
	containers []string
	services   []catalog.Service
	former     []catalog.Service // what FormerServices returns
	swept      string            // what was on stdout when that was asked for
	stdout     func() string
	calls      int
	count      snapshot.Count // what CountAtTimes counts; negative: it does not
	prunes     []removal.PruneOptions
	pruned     removal.Pruned
	looked     removal.OutlookOptions
	outlook    removal.Outlook
}

func (f *fakeEngine) called(p plan.Progress) error {
	f.calls++
	for _, e := range f.events {
		p(e)
	}
	return f.err
}

func (f *fakeEngine) Create(_ context.Context, o capture.Options, p plan.Progress) (capture.Created, error) {
	f.create = o
	f.attached = nil
	for _, a := range o.Attachments {
		content, err := io.ReadAll(a.Content)
		if err != nil {
			return capture.Created{}, err
		}
		f.attached = append(f.attached, a.Name+"="+string(content))
	}
	if f.containers != nil && !slices.Contains(f.containers, o.Container) {
		return capture.Created{}, fmt.Errorf("no such container: %s: %w", o.Container, cerrdefs.ErrNotFound)
	}
	return f.created, f.called(p)
}

func (f *fakeEngine) CreateTogether(_ context.Context, all []capture.Options, p plan.Progress) ([]capture.Created, error) {
	f.together = all
	for _, o := range all {
		if f.containers != nil && !slices.Contains(f.containers, o.Container) {
			return nil, fmt.Errorf("no such container: %s: %w", o.Container, cerrdefs.ErrNotFound)
		}
	}
	made := make([]capture.Created, len(all))
	for i := range all {
		made[i] = f.created
	}
	return made, f.called(p)
}

func (f *fakeEngine) Restore(_ context.Context, o runconfig.RestoreOptions, p plan.Progress) (build.Restored, error) {
	f.restore = o
	return f.restored, f.called(p)
}

func (f *fakeEngine) List(_ context.Context, o catalog.ListOptions, p plan.Progress) ([]catalog.Snapshot, error) {
	f.listed = o
	return f.list, f.called(p)
}

// Lost is also asked when a word means no snapshot, so it does not count as a call.
func (f *fakeEngine) Lost(_ context.Context, o catalog.ListOptions, _ plan.Progress) ([]archives.Lost, error) {
	f.listed = o
	return f.lost, f.err
}

func (f *fakeEngine) Resolve(_ context.Context, word string) (catalog.Snapshot, error) {
	i := slices.IndexFunc(f.list, func(s catalog.Snapshot) bool {
		return word == string(s.ID) || word == s.Name || word == s.Container.Name+":"+string(s.ID)
	})
	if i < 0 {
		return catalog.Snapshot{}, &catalog.NotFoundError{Word: word}
	}
	return f.list[i], nil
}

func (f *fakeEngine) TakenWith(context.Context, catalog.Snapshot) ([]catalog.Snapshot, error) {
	return nil, f.err
}

func (f *fakeEngine) RestoresOf(context.Context, catalog.Snapshot) ([]catalog.Restore, error) {
	return f.restores, nil
}

func (f *fakeEngine) Drill(_ context.Context, _ snapshot.DrillOptions, p plan.Progress) (verify.Report, error) {
	return verify.Report{}, f.called(p)
}

func (f *fakeEngine) Outlook(_ context.Context, o removal.OutlookOptions, p plan.Progress) (removal.Outlook, error) {
	f.looked = o
	return f.outlook, f.called(p)
}

func (f *fakeEngine) History(_ context.Context, o catalog.ListOptions, p plan.Progress) (history.History, error) {
	f.listed = o
	return history.Of(f.list, f.restores, f.running), f.called(p)
}

func (f *fakeEngine) Diff(_ context.Context, o diff.Options, p plan.Progress, visit func(diff.Change)) error {
	f.diff = o
	for _, c := range f.changes {
		visit(c)
	}
	return errors.Join(f.diffErr, f.called(p))
}

func (f *fakeEngine) Contents(_ context.Context, o diff.Options, path string, p plan.Progress) (before, after extract.File, err error) {
	f.diff, f.path = o, path
	return f.files[0], f.files[1], f.called(p)
}

func (f *fakeEngine) Extract(_ context.Context, source extract.Source, destination string, p plan.Progress) error {
	f.source, f.dest = source, destination
	return f.called(p)
}

func (f *fakeEngine) Children(_ context.Context, source extract.Source) ([]extract.Child, error) {
	f.source = source
	return []extract.Child{{Name: "bin", IsDirectory: true}, {Name: "boot.log"}, {Name: "b\x1b"}, {Name: "etc", IsDirectory: true}}, f.err
}

func (f *fakeEngine) ExtractTar(_ context.Context, source extract.Source, out io.Writer, p plan.Progress) error {
	f.source = source
	_, err := io.WriteString(out, "a\xff\x1b\n")
	return errors.Join(err, f.called(p))
}

func (f *fakeEngine) Annotate(ctx context.Context, a capture.Annotation, p plan.Progress) (catalog.Snapshot, error) {
	f.annotated = a
	s, err := f.Resolve(ctx, a.Snapshot)
	return s, errors.Join(err, f.called(p))
}

func (f *fakeEngine) Attachment(_ context.Context, s catalog.Snapshot, name string, out io.Writer) error {
	if _, known := s.Attachment(name); !known {
		return &archives.NoAttachmentError{Snapshot: s.ID, Attachment: name}
	}
	_, err := io.WriteString(out, "a\xff\n")
	return errors.Join(err, f.err)
}

func (f *fakeEngine) Remove(ctx context.Context, words []string, o removal.Options, _ plan.Progress) []removal.Removal {
	f.calls++
	results := make([]removal.Removal, len(words))
	for i, word := range words {
		s, err := f.Resolve(ctx, word)
		if err == nil && s.Pinned && !o.Force {
			err = &catalog.PinnedError{ID: s.ID}
		}
		if err == nil {
			f.removed = append(f.removed, string(s.ID))
		}
		results[i] = removal.Removal{Word: word, Snapshot: s, Err: err}
	}
	return results
}

func (f *fakeEngine) Containers(context.Context) ([]catalog.Candidate, error) {
	if f.containers != nil {
		return convert(f.containers, func(name string) catalog.Candidate { return catalog.Candidate{Word: name} }), f.err
	}
	return []catalog.Candidate{{Word: "web", About: "nginx, running"}, {Word: "db", About: "postgres, \x1b[1mrunning"}}, f.err
}

func (f *fakeEngine) VolumeNames(_ context.Context, mountedBy string) ([]catalog.Candidate, error) {
	return []catalog.Candidate{{Word: "data-of-" + mountedBy}}, f.err
}

func (f *fakeEngine) Stores(context.Context) ([]catalog.Candidate, error) {
	return []catalog.Candidate{{Word: "cua-snapshots"}}, f.err
}

func (f *fakeEngine) NetworkNames(context.Context) ([]catalog.Candidate, error) {
	return []catalog.Candidate{{Word: "front", About: "bridge"}}, f.err
}

func (f *fakeEngine) References(_ context.Context, prefix string) ([]catalog.Candidate, error) {
	refs := []catalog.Candidate{{Word: "web:before"}, {Word: "web:latest"}, {Word: string(firstID)}}
	return slices.DeleteFunc(refs, func(ref catalog.Candidate) bool { return !strings.HasPrefix(ref.Word, prefix) }), f.err
}

func (f *fakeEngine) Sweep(context.Context, plan.Progress) { f.swept = f.stdout() }

func (f *fakeEngine) CountAtTimes(context.Context, string) (snapshot.Count, bool, error) {
	return f.count, f.count.Automatic >= 0, nil
}

func (f *fakeEngine) Prune(_ context.Context, o removal.PruneOptions, p plan.Progress) (removal.Pruned, error) {
	f.prunes = append(f.prunes, o)
	return f.pruned, f.called(p)
}

func (f *fakeEngine) Services(_ context.Context, name string) ([]catalog.Service, error) {
	return slices.DeleteFunc(slices.Clone(f.services), func(s catalog.Service) bool { return name != "" && s.Name != name }), f.err
}

func (f *fakeEngine) FormerServices(_ context.Context, name string) ([]catalog.Service, error) {
	return slices.DeleteFunc(slices.Clone(f.former), func(s catalog.Service) bool { return s.Name != name }), f.err
}

// fakeClock stands still until it is advanced. Timers fire while it is.
type fakeClock struct {
	mu     sync.Mutex
	time   time.Time
	timers []*fakeTimer
}

type fakeTimer struct {
	at   time.Time
	fire func()
}

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func (c *fakeClock) clock() clock { return clock{now: c.now, after: c.after} }

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

func (c *fakeClock) after(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := &fakeTimer{c.time.Add(d), f}
	c.timers = append(c.timers, timer)
	return func() bool { return c.drop(timer) }
}

func (c *fakeClock) drop(timer *fakeTimer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.timers, timer)
	if at >= 0 {
		c.timers = slices.Delete(c.timers, at, at+1)
	}
	return at >= 0
}

// next takes the first timer that is due by end.
func (c *fakeClock) next(end time.Time) *fakeTimer {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.timers, func(a, b *fakeTimer) int { return a.at.Compare(b.at) })
	if len(c.timers) == 0 || c.timers[0].at.After(end) {
		c.time = end
		return nil
	}
	timer := c.timers[0]
	c.timers = c.timers[1:]
	c.time = timer.at
	return timer
}

func (c *fakeClock) advance(d time.Duration) {
	end := c.now().Add(d)
	for timer := c.next(end); timer != nil; timer = c.next(end) {
		timer.fire()
	}
}

// fixture is everything around a command: an engine, the user's settings, and
// what came out.
type fixture struct {
	engine      *fakeEngine
	connect     error  // instead of the engine
	evil        engine // instead of the engine
	environment map[string]string
	config      map[string]string
	clock       *fakeClock
	stdin       string
	arguments   []string
	configFile  string // empty: one that is not there
	cliVersion  string

	tidied []bool // the tidies that were started: whether only for what has expired

	stdout, stderr bytes.Buffer
}

func newFixture() *fixture {
	return &fixture{engine: &fakeEngine{}, clock: &fakeClock{time: noon}}
}

func (f *fixture) deps() deps {
	return deps{
		in:  streams.NewIn(io.NopCloser(strings.NewReader(f.stdin))),
		out: terminal{streams.NewOut(&f.stdout)},
		err: terminal{streams.NewOut(&f.stderr)},
		engine: func(volumeOptions) (engine, error) {
			if f.connect != nil {
				return nil, f.connect
			}
			if f.evil != nil {
				return f.evil, nil
			}
			return f.engine, nil
		},
		settings: settings{
			environment: func(key string) (string, bool) { value, ok := f.environment[key]; return value, ok },
			config:      func(key string) (string, bool) { value, ok := f.config[key]; return value, ok },
			configFile:  func() string { return cmp.Or(f.configFile, "/home/me/.docker/config.json") },
		},
		arguments:  f.arguments,
		directory:  "/src/shop",
		tidy:       func(_ context.Context, onlyExpired bool) { f.tidied = append(f.tidied, onlyExpired) },
		clock:      f.clock.clock(),
		cliVersion: func(context.Context) string { return f.cliVersion },
		version:    "v1.2.3",
	}
}

// docker returns the command tree as the CLI's plugin package sets it up.
func (f *fixture) docker() *cobra.Command {
	docker := &cobra.Command{Use: "docker", SilenceUsage: true, SilenceErrors: true, TraverseChildren: true}
	cli.SetupPluginRootCommand(docker)
	docker.AddCommand(newRoot(f.deps()))
	docker.SetOut(&f.stdout)
	docker.SetErr(&f.stderr)
	return docker
}

// run runs "docker snapshot args…" and returns its exit status. Like the CLI's
// plugin package, it prints the error.
func (f *fixture) run(t *testing.T, args ...string) int {
	t.Helper()
	f.arguments = append([]string{Name}, args...)
	docker := f.docker()
	docker.SetArgs(append([]string{Name}, args...))
	err := docker.ExecuteContext(t.Context())
	if err == nil {
		return 0
	}
	fmt.Fprintln(&f.stderr, err)
	if status, ok := errors.AsType[cli.StatusError](err); ok {
		return status.StatusCode
	}
	return 1
}

const (
	firstID  labels.ID = "20260314-092653-58979a"
	secondID labels.ID = "20260314-113000-323846"
)

// firstSnapshot has a value for everything.
func firstSnapshot() catalog.Snapshot {
	return catalog.Snapshot{
		Record: labels.Record{
			ID: firstID, Name: "before", Description: "before the upgrade of everything to version 2.0, which is large",
			Created: time.Date(2026, 3, 14, 9, 26, 53, 589793238, time.UTC),
			Tags:    []string{"keep", "release"}, Trigger: labels.TriggerBeforeAction,
			RunID: "run-1", StepID: "step-2", Parent: "20260313-000000-000000", Group: "shop",
			Container: labels.Container{
				ID: strings.Repeat("c0ffee", 11)[:64], Name: "web", State: labels.StateRunning,
				Image: "nginx:1.29", ImageID: "sha256:" + strings.Repeat("ab", 32),
			},
			EngineID: "ABCD:EFGH", Platform: "linux/amd64",
			Config: labels.Config{
				Config:     json.RawMessage(`{"Env":["A=1"],"Labels":{"tier":"front"},"StopTimeout":12345678901234567890}`),
				HostConfig: json.RawMessage(`{"Memory":67108864,"FromTheFuture":{"a":1}}`),
			},
			Mounts: []labels.Mount{
				{
					Type: "volume", Name: "data", Destination: "/data", Driver: "local", RW: true,
					Archive: &labels.Archive{
						Root: strings.Repeat("1f", 32), Entries: 12, Bytes: 5_000_000, Stored: 3_000_000,
						Excluded: &labels.Exclusions{Patterns: []string{"node_modules"}, Globs: []string{"*.log"}, Included: []string{"keep.log"}, Gitignore: true, Entries: 4},
					},
				},
				{Type: "bind", Source: "/srv", Destination: "/srv", Skipped: "bind mount"},
			},
			Attachments: []labels.Attachment{{Name: "log", Bytes: 7, SHA256: strings.Repeat("2e", 32), MediaType: "text/plain"}},
			Size:        1_234_567, Expires: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC), Pinned: true,
			Meta: map[string]string{"ticket": "42", "by": "ann"},
		},
		ImageID: "sha256:" + strings.Repeat("cd", 32),
		Refs:    []string{"cua-snapshot/web:" + string(firstID), "cua-snapshot/web:before"},
	}
}

// secondSnapshot has only what every snapshot has.
func secondSnapshot() catalog.Snapshot {
	return catalog.Snapshot{
		Record: labels.Record{
			ID: secondID, Created: time.Date(2026, 3, 14, 11, 30, 0, 0, time.UTC), Trigger: labels.TriggerManual,
			Container: labels.Container{ID: strings.Repeat("d", 64), Name: "db", State: labels.StateExited, Image: "postgres"},
			Config:    labels.Config{Config: json.RawMessage(`{}`), HostConfig: json.RawMessage(`{}`)},
			Mounts:    []labels.Mount{{Type: "volume", Name: "pg", Destination: "/var/lib/postgresql", Skipped: "left out"}},
			Size:      42,
		},
		ImageID: "sha256:" + strings.Repeat("ef", 32),
		Refs:    []string{"cua-snapshot/db:" + string(secondID), "cua-snapshot/db:latest"},
	}
}
