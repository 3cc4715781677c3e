package snapshot

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func TestRepository(t *testing.T) {
	for name, want := range map[string]string{
		"web":                    "cua-snapshot/web",
		"/web":                   "cua-snapshot/web",
		"a__b.c--d":              "cua-snapshot/a__b.c--d",
		"web--0123456789abcde":   "cua-snapshot/web--0123456789abcde",
		"web--0123456789abcdeg":  "cua-snapshot/web--0123456789abcdeg",
		"Web":                    "cua-snapshot/web--2975104784a401e3",
		"Shop-DB_1":              "cua-snapshot/shop-db_1--4b6b61fc79648af9",
		"a___b":                  "cua-snapshot/a-b--ce178f6c87d9600c",
		"a._b":                   "cua-snapshot/a-b--dd1c251ab4c153b1",
		"web_":                   "cua-snapshot/web--a2a7447b6d123522",
		"web.":                   "cua-snapshot/web--4534c3392c4e2bbe",
		"0.-_":                   "cua-snapshot/0--a69a4e774d6aab7e",
		"web--a2a7447b6d123522":  "cua-snapshot/web--a2a7447b6d123522--5cffffe8c1ffdab9", // what the repository of web_ is called
		strings.Repeat("n", 200): "cua-snapshot/" + strings.Repeat("n", 200),
		strings.Repeat("n", 300): "cua-snapshot/" + strings.Repeat("n", 214) + "--230b077491957fb4",
	} {
		assert.Check(t, is.Equal(catalog.Repository(name), want))
	}
}

// FuzzRepository has two names: whatever an engine allows, the repository is one that
// it allows too, and two containers never share one.
func FuzzRepository(f *testing.F) {
	f.Add("web", "Web")
	f.Add("web", "web.")
	f.Add("a..b", "a-b")
	f.Add("a_-b", "a-b")
	f.Add("web_", "web--a2a7447b6d123522")
	f.Add(strings.Repeat("n", 300), strings.Repeat("n", 301))
	f.Add(strings.Repeat("n", 232), strings.Repeat("n", 233))
	f.Fuzz(func(t *testing.T, one, other string) {
		for _, name := range []string{one, other} {
			if !labels.IsContainerName(name) {
				return
			}
			repository := catalog.Repository(name)
			parsed, err := reference.ParseNormalizedNamed(repository)
			assert.NilError(t, err, "%s", name)
			assert.Equal(t, reference.FamiliarName(parsed), repository)
			assert.Assert(t, len(parsed.Name()) <= 255)
		}
		assert.Equal(t, catalog.Repository(one) == catalog.Repository(other), one == other)
	})
}

// Names that come to the same legal name, and the name of a repository itself,
// are those of different containers.
func TestRepositoriesOfDifferentContainersDiffer(t *testing.T) {
	const letters = "aA0_.-__..--"
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{}
	for range 5_000 {
		name := []byte{letters[random.IntN(3)]}
		for range 1 + random.IntN(5) {
			name = append(name, letters[random.IntN(len(letters))])
		}
		repository := catalog.Repository(string(name))
		for _, container := range []string{string(name), strings.TrimPrefix(repository, catalog.Namespace)} {
			other, taken := seen[catalog.Repository(container)]
			assert.Assert(t, !taken || other == container, "%s and %s", other, container)
			seen[catalog.Repository(container)] = container
		}
	}
}

// withSnapshots returns an engine that has these snapshots, oldest first, each
// written as container or container:name.
func withSnapshots(t *testing.T, words ...string) (*enginetest.Docker, []catalog.Snapshot) {
	t.Helper()
	docker := enginetest.New()
	engine := engineOf(docker)
	var made []catalog.Snapshot
	for _, word := range words {
		name, tag, _ := strings.Cut(word, ":")
		if docker.FindContainer(name) == nil {
			docker.Run(t, name)
		}
		created, err := engine.Create(t.Context(), capture.Options{Container: name, Name: tag}, nil)
		assert.NilError(t, err)
		made = append(made, created.Snapshot)
	}
	docker.ForgetCalls()
	return docker, made
}

func TestResolve(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two", "db:one", "db:only", "Shop_DB.1:a")
	first, second, third, fourth, fifth := made[0], made[1], made[2], made[3], made[4]
	// A name that reads like the beginning of an ID.
	named, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Name: string(third.ID)[:17]}, nil)
	assert.NilError(t, err)

	for word, want := range map[string]labels.ID{
		"web:one":                       first.ID,
		"web:two":                       second.ID,
		"web:latest":                    named.ID,
		"db:latest":                     fourth.ID,
		"/web:one":                      "",
		"cua-snapshot/web:one":          first.ID,
		"cua-snapshot/db:latest":        fourth.ID,
		"Shop_DB.1:a":                   fifth.ID,
		"shop_db.1:a":                   "",
		"Shop_DB.1:" + string(fifth.ID): fifth.ID,
		strings.TrimPrefix(fifth.Ref(), catalog.Namespace): "", // there is no container of that name
		fifth.Ref():                       fifth.ID, // but it is what the engine shows
		"web:" + string(first.ID):         first.ID,
		string(first.ID):                  first.ID,
		string(first.ID)[:20]:             first.ID,
		"two":                             second.ID,
		"only":                            fourth.ID,
		string(third.ID)[:17]:             named.ID, // an exact name beats a prefix
		string(third.ID)[:18]:             third.ID,
		"tw":                              "", // names are not cut short
		"":                                "",
		"web":                             named.ID,
		"db":                              fourth.ID,
		"Shop_DB.1":                       fifth.ID,
		"Web":                             "",
		"web:":                            "",
		":one":                            "",
		"web:three":                       "",
		"gone:one":                        "",
		"web/one":                         "",
		"a/b:c":                           "",
		"*":                               "",
		"web:*":                           "",
		"t*":                              "",
		"[t]wo":                           "",
		"t?o":                             "",
		`t\wo`:                            "",
		"two\n":                           "",
		strings.Repeat("n", 200):          "",
		"web:" + strings.Repeat("n", 200): "",
		strings.Repeat("n", 300) + ":one": "",
	} {
		t.Run(word, func(t *testing.T) {
			found, err := engineOf(docker).Resolve(t.Context(), word)
			if want == "" {
				assert.Assert(t, cerrdefs.IsNotFound(err), "%v %v", found.ID, err)
				assert.ErrorContains(t, err, "no such snapshot: ")
				return
			}
			assert.NilError(t, err)
			assert.Equal(t, found.ID, want)
		})
	}
}

func TestResolveKnowsEveryTag(t *testing.T) {
	docker, made := withSnapshots(t, "web:one")
	for _, word := range []string{"one", "web:one", string(made[0].ID), string(made[0].ID)[:12]} {
		found, err := engineOf(docker).Resolve(t.Context(), word)
		assert.NilError(t, err)
		assert.DeepEqual(t, found.Refs, []string{"cua-snapshot/web:" + string(made[0].ID), "cua-snapshot/web:latest", "cua-snapshot/web:one"})
	}
}

// Names that differ in case only are those of two containers.
func TestResolveGoesByTheContainersOwnName(t *testing.T) {
	docker, made := withSnapshots(t, "app:one")
	for _, word := range []string{"App:one", "App:latest", "App:" + string(made[0].ID), "app.:one", "app_:latest"} {
		_, err := engineOf(docker).Resolve(t.Context(), word)
		assert.Error(t, err, "no such snapshot: "+word)
	}
	// Somebody has given the image of one container a tag of another.
	assert.NilError(t, docker.ImageTag(t.Context(), made[0].ImageID, "cua-snapshot/web:one"))
	_, err := engineOf(docker).Resolve(t.Context(), "web:one")
	assert.Error(t, err, "no such snapshot: web:one")
	docker.Run(t, "web")
	_, err = engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Name: "one", Reuse: true}, nil)
	assert.Error(t, err, "web:one exists already, and is not a snapshot of this container that could be replaced")
}

func TestResolveListsTheCandidatesOfAnAmbiguousWord(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "db:one", "db")
	_, err := engineOf(docker).Resolve(t.Context(), "one")
	var ambiguous *catalog.AmbiguousError
	assert.Assert(t, errors.As(err, &ambiguous), "%v", err)
	assert.DeepEqual(t, ambiguous.Candidates, []string{"db:one (" + string(made[1].ID) + ")", "web:one (" + string(made[0].ID) + ")"})
	assert.ErrorContains(t, err, "\"one\" is ambiguous, it could be any of:\n  db:one (2026")

	_, err = engineOf(docker).Resolve(t.Context(), "2026")
	assert.Assert(t, errors.As(err, &ambiguous))
	assert.DeepEqual(t, ambiguous.Candidates, []string{
		"db:" + string(made[2].ID), "db:one (" + string(made[1].ID) + ")", "web:one (" + string(made[0].ID) + ")",
	})

	_, err = engineOf(docker).Resolve(t.Context(), "latest")
	assert.Assert(t, errors.As(err, &ambiguous))
}

// Listing every image takes seconds where there are many.
func TestResolveDoesNotListEveryImage(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two")
	for word, want := range map[string][]string{
		"web:one":          {"ImageInspect cua-snapshot/web:one"},
		"two":              {"ImageInspect cua-snapshot/two:latest", "ImageInspect " + made[1].ImageID, "ImageList", "ImageList"},
		string(made[0].ID): {"ImageInspect " + made[0].ImageID, "ImageList"},
	} {
		docker.ForgetCalls()
		_, err := engineOf(docker).Resolve(t.Context(), word)
		assert.NilError(t, err)
		assert.DeepEqual(t, slices.Sorted(slices.Values(docker.Calls)), want)
	}
}

// A container stands for its latest snapshot, and with an age for the newest as old.
func TestResolveOfAContainer(t *testing.T) {
	docker := listScene(t) // a, b and c of web, d of db, an hour apart
	docker.Run(t, "idle")
	b, err := engineOf(docker).Resolve(t.Context(), "web:b")
	assert.NilError(t, err)
	assert.NilError(t, engineOf(docker).docker.RemoveImage(t.Context(), "cua-snapshot/db:latest"))
	for word, want := range map[string]string{
		"web":     "c",
		"db":      "d", // whose tag latest the user has removed
		"web@0":   "c",
		"web@5m":  "c",
		"web@90m": "c",
		"web@3h":  "b",
		"web@" + b.Created.Format(time.RFC3339Nano):                           "b",
		"web@" + b.Created.Add(-1).Format(time.RFC3339Nano):                   "a",
		"web@" + b.Created.Add(time.Minute).Format("2006-01-02T15:04"):        "b",
		"web@" + b.Created.Add(time.Second).Format("2006-01-02 15:04:05"):     "b",
		"web@" + b.Created.Add(24*time.Hour).Format("2006-01-02"):             "c",
		"web@" + b.Created.Add(2*time.Hour).Format("2006-01-02T15:04:05.000"): "c",
	} {
		s, err := engineOf(docker).Resolve(t.Context(), word)
		assert.NilError(t, err, word)
		assert.Equal(t, s.Name, want, word)
	}
	for word, want := range map[string]string{
		"idle":           "container idle has no snapshots",
		"idle@5m":        "container idle has no snapshots",
		"gone":           "no such snapshot: gone",
		"gone@5m":        "no such snapshot: gone",
		"web@1w":         "container web has no snapshot that old: the oldest, ",
		"web@yesterday":  `invalid snapshot "web@yesterday": after @ use something like 5m`,
		"web@":           "invalid snapshot",
		"a/b@5m":         "invalid snapshot",
		"web@5m@5m":      "invalid snapshot",
		"web@2026-13-01": "invalid snapshot",
	} {
		_, err := engineOf(docker).Resolve(t.Context(), word)
		assert.ErrorContains(t, err, want, word)
	}
	docker.Run(t, "both") // is also what a snapshot is called
	snapshotOf(t, docker, capture.Options{Container: "both"})
	snapshotOf(t, docker, capture.Options{Container: "idle", Name: "both"})
	_, err = engineOf(docker).Resolve(t.Context(), "both")
	var ambiguous *catalog.AmbiguousError
	assert.Assert(t, errors.As(err, &ambiguous), "%v", err)
	assert.Equal(t, len(ambiguous.Candidates), 2)
}

// The newest snapshot after a restore in place is the safety snapshot, with the state that the user has thrown away.
func TestResolveOfAContainerSkipsSafetySnapshots(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}}).State = "running"
	resolve := func(word string) string {
		t.Helper()
		s, err := engineOf(docker).Resolve(t.Context(), word)
		assert.NilError(t, err)
		return string(s.ID)
	}
	one := snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	docker.Clock = docker.Clock.Add(time.Hour)
	two := snapshotOf(t, docker, capture.Options{Container: "web", Name: "two"})
	for range 2 { // the second time, the newest one is a safety snapshot
		docker.Clock = docker.Clock.Add(time.Hour)
		before := docker.Clock.Add(-time.Minute).Format(time.RFC3339Nano)
		replaced, err := engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}, nil)
		assert.NilError(t, err)
		docker.Clock = docker.Clock.Add(time.Hour)
		assert.Equal(t, resolve("web"), string(two.ID))
		assert.Equal(t, resolve("web:latest"), string(two.ID))
		assert.Equal(t, resolve("web@10s"), string(one.ID), "the state that was restored")
		assert.Assert(t, resolve("web@"+before) != string(replaced.Safety.ID))
		assert.Equal(t, resolve("web@"+replaced.Safety.Created.Format(time.RFC3339Nano)), string(one.ID), "while the restore was at work")
		assert.Equal(t, resolve(string(replaced.Safety.ID)), string(replaced.Safety.ID))
	}
	docker.Clock = docker.Clock.Add(time.Hour)
	assert.Equal(t, resolve("web@5h"), string(two.ID))
	three := snapshotOf(t, docker, capture.Options{Container: "web", Name: "three"})
	assert.Equal(t, resolve("web"), string(three.ID))
	assert.Equal(t, resolve("web@0"), string(three.ID))
	assert.Equal(t, resolve("web@1h"), string(one.ID), "the state that was restored before")

	for _, s := range []catalog.Snapshot{one, two, three} {
		_, err := removeOne(t, engineOf(docker), string(s.ID), removal.Options{}, nil)
		assert.NilError(t, err)
	}
	_, err := engineOf(docker).Resolve(t.Context(), "web:latest")
	assert.ErrorContains(t, err, "container web has only safety snapshots")
	_, err = engineOf(docker).Resolve(t.Context(), "web@10s")
	assert.ErrorContains(t, err, "which is gone")
}

func TestResolveDoesNotTakeWhatInheritedLabelsForASnapshot(t *testing.T) {
	docker, made := withSnapshots(t, "web:one")
	child := docker.AddImage("cua-snapshot/web:mine", &container.Config{Labels: docker.FindImage(made[0].ImageID).Config.Labels})
	for _, word := range []string{"mine", "web:mine", "cua-snapshot/web:mine"} {
		_, err := engineOf(docker).Resolve(t.Context(), word)
		assert.Assert(t, err != nil, word)
	}
	child.Config = &container.Config{Labels: map[string]string{labels.KeyID: "nonsense"}}
	_, err := engineOf(docker).Resolve(t.Context(), "web:mine")
	assert.ErrorContains(t, err, "read snapshot cua-snapshot/web:mine")
	_, err = engineOf(docker).Resolve(t.Context(), "one")
	assert.NilError(t, err)
}

func TestReferencesForCompletion(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "db", "Web")
	words := func(candidates []catalog.Candidate, err error) string {
		assert.NilError(t, err)
		var words []string
		for _, c := range candidates {
			assert.Assert(t, c.About != "")
			words = append(words, c.Word)
		}
		return strings.Join(words, " ")
	}
	docker.Create(t, "shop-db-1", &container.Config{Labels: map[string]string{"com.docker.compose.service": "db", "com.docker.compose.project": "shop", "com.docker.compose.project.working_dir": "/src/shop"}},
		&container.HostConfig{Binds: []string{"data:/data"}})
	engine, ctx := engineOf(docker), t.Context()
	for prefix, want := range map[string]string{
		"web": "web:one", "web:l": "web:latest", string(made[0].ID): string(made[0].ID), string(made[1].ID)[:15]: string(made[1].ID),
		"W": "Web:" + string(made[2].ID), "nothing": "",
	} {
		assert.Equal(t, words(engine.References(ctx, prefix)), want)
	}
	assert.Equal(t, words(engine.Containers(ctx)), "shop-db-1 Web db web")
	assert.Equal(t, words(engine.VolumeNames(ctx, "shop-db-1")), "data")
	assert.Equal(t, words(engine.VolumeNames(ctx, "gone")), "")
	assert.Assert(t, slices.Contains(strings.Fields(words(engine.VolumeNames(ctx, ""))), "data"))
	assert.Equal(t, len(strings.Fields(words(engine.NetworkNames(ctx)))), 3)
	services, err := engine.Services(ctx, "db")
	assert.NilError(t, err)
	assert.DeepEqual(t, services, []catalog.Service{{Name: "db", Container: "shop-db-1", Project: "shop", Directory: "/src/shop"}})
}

// Of a Compose project that is down there are only snapshots.
func TestServicesOfSnapshots(t *testing.T) {
	docker := enginetest.New()
	of := func(service, oneOff string) *container.Config {
		return &container.Config{Labels: map[string]string{
			"com.docker.compose.service": service, "com.docker.compose.project": "shop", "com.docker.compose.project.working_dir": "/src/shop",
			"com.docker.compose.oneoff": oneOff,
		}}
	}
	docker.Create(t, "shop-db-1", of("db", "False"), &container.HostConfig{})
	docker.Create(t, "shop-db-run", of("db", "True"), &container.HostConfig{})
	docker.Create(t, "shop-web-1", of("web", "False"), &container.HostConfig{})
	for i, name := range []string{"shop-db-1", "shop-db-1", "shop-db-run", "shop-web-1"} {
		docker.Randomness = byte(10 * i)
		snapshotOf(t, docker, capture.Options{Container: name})
	}
	services, err := engineOf(docker).FormerServices(t.Context(), "db")
	assert.NilError(t, err)
	assert.DeepEqual(t, services, []catalog.Service{{Name: "db", Container: "shop-db-1", Project: "shop", Directory: "/src/shop"}})
}

// A name that a snapshot has lost names nothing any more, but the error says what it was.
func TestALostNameIsExplained(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	made, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Name: "one"}, nil)
	assert.NilError(t, err)
	_, err = docker.ImageRemove(t.Context(), "cua-snapshot/web:one", image.RemoveOptions{})
	assert.NilError(t, err)
	_, err = engineOf(docker).Resolve(t.Context(), "web:one")
	assert.Error(t, err, "no such snapshot: web:one: it has lost this name, and is still there as "+string(made.ID))
	assert.Assert(t, cerrdefs.IsNotFound(err))
	_, err = engineOf(docker).Resolve(t.Context(), "web:two")
	assert.Error(t, err, "no such snapshot: web:two")

	// the name is another's now, and that is gone
	other, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Name: "one"}, nil)
	assert.NilError(t, err)
	for _, r := range engineOf(docker).Remove(t.Context(), []string{string(other.ID)}, removal.Options{}, nil) {
		assert.NilError(t, r.Err)
	}
	_, err = engineOf(docker).Resolve(t.Context(), "web:one")
	assert.ErrorContains(t, err, string(made.ID))
}
