package snapshot

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestRepository(t *testing.T) {
	for name, want := range map[string]string{
		"web":                    "cua-snapshot/web",
		"/web":                   "cua-snapshot/web",
		"Shop-DB_1":              "cua-snapshot/shop-db_1",
		"a__b.c--d":              "cua-snapshot/a__b.c--d",
		"a___b":                  "cua-snapshot/a-b",
		"a._b":                   "cua-snapshot/a-b",
		"a..b":                   "cua-snapshot/a-b",
		"web_":                   "cua-snapshot/web",
		"0.-_":                   "cua-snapshot/0",
		strings.Repeat("n", 200): "cua-snapshot/" + strings.Repeat("n", 200),
		strings.Repeat("N", 300): "cua-snapshot/" + strings.Repeat("n", 215) + "-230b077491957fb4",
	} {
		assert.Equal(t, Repository(name), want)
	}
}

// Whatever name an engine allows, the repository is one that it allows too, and
// naming the container by its repository's last part comes to the same.
func TestRepositoryIsAlwaysLegal(t *testing.T) {
	const letters = "abzAZ019_.-__..--"
	random := rand.New(rand.NewPCG(1, 2))
	for range 2_000 {
		name := []byte{letters[random.IntN(8)]}
		for range 1 + random.IntN(12)*random.IntN(12)*random.IntN(4) {
			name = append(name, letters[random.IntN(len(letters))])
		}
		repository := Repository(string(name))
		parsed, err := reference.ParseNormalizedNamed(repository)
		assert.NilError(t, err, "%s", name)
		assert.Equal(t, reference.FamiliarName(parsed), repository)
		assert.Assert(t, len(parsed.Name()) <= 255)
		assert.Equal(t, Repository(strings.TrimPrefix(repository, namespace)), repository)
	}
}

// withSnapshots returns an engine that has these snapshots, oldest first, each
// written as container or container:name.
func withSnapshots(t *testing.T, words ...string) (*fakeDocker, []Snapshot) {
	t.Helper()
	docker := newFakeDocker()
	engine := docker.engine()
	var made []Snapshot
	for _, word := range words {
		name, tag, _ := strings.Cut(word, ":")
		if docker.findContainer(name) == nil {
			docker.run(t, name)
		}
		created, err := engine.Create(t.Context(), CreateOptions{Container: name, Name: tag}, nil)
		assert.NilError(t, err)
		made = append(made, created.Snapshot)
	}
	docker.forgetCalls()
	return docker, made
}

func TestResolve(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two", "db:one", "db:only", "Shop_DB.1:a")
	first, second, third, fourth, fifth := made[0], made[1], made[2], made[3], made[4]
	// A name that reads like the beginning of an ID.
	named, err := docker.engine().Create(t.Context(), CreateOptions{Container: "web", Name: string(third.ID)[:17]}, nil)
	assert.NilError(t, err)

	for word, want := range map[string]labels.ID{
		"web:one":                         first.ID,
		"web:two":                         second.ID,
		"web:latest":                      named.ID,
		"db:latest":                       fourth.ID,
		"/web:one":                        "",
		"cua-snapshot/web:one":            first.ID,
		"cua-snapshot/db:latest":          fourth.ID,
		"Shop_DB.1:a":                     fifth.ID,
		"shop_db.1:a":                     fifth.ID,
		"web:" + string(first.ID):         first.ID,
		string(first.ID):                  first.ID,
		string(first.ID)[:20]:             first.ID,
		"two":                             second.ID,
		"only":                            fourth.ID,
		string(third.ID)[:17]:             named.ID, // an exact name beats a prefix
		string(third.ID)[:18]:             third.ID,
		"tw":                              "", // names are not cut short
		"":                                "",
		"web":                             "",
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
			found, err := docker.engine().Resolve(t.Context(), word)
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
		found, err := docker.engine().Resolve(t.Context(), word)
		assert.NilError(t, err)
		assert.DeepEqual(t, found.Refs, []string{"cua-snapshot/web:" + string(made[0].ID), "cua-snapshot/web:latest", "cua-snapshot/web:one"})
	}
}

func TestResolveListsTheCandidatesOfAnAmbiguousWord(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "db:one", "db")
	_, err := docker.engine().Resolve(t.Context(), "one")
	var ambiguous *AmbiguousError
	assert.Assert(t, errors.As(err, &ambiguous), "%v", err)
	assert.DeepEqual(t, ambiguous.Candidates, []string{"db:" + string(made[1].ID) + " (one)", "web:" + string(made[0].ID) + " (one)"})
	assert.ErrorContains(t, err, "\"one\" is ambiguous, it could be any of:\n  db:2026")

	_, err = docker.engine().Resolve(t.Context(), "2026")
	assert.Assert(t, errors.As(err, &ambiguous))
	assert.DeepEqual(t, ambiguous.Candidates, []string{
		"db:" + string(made[2].ID), "db:" + string(made[1].ID) + " (one)", "web:" + string(made[0].ID) + " (one)",
	})

	_, err = docker.engine().Resolve(t.Context(), "latest")
	assert.Assert(t, errors.As(err, &ambiguous))
}

// Listing every image takes seconds where there are many.
func TestResolveDoesNotListEveryImage(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two")
	for word, want := range map[string][]string{
		"web:one":          {"ImageInspect cua-snapshot/web:one"},
		"two":              {"ImageList", "ImageInspect " + made[1].ImageID},
		string(made[0].ID): {"ImageList", "ImageInspect " + made[0].ImageID},
	} {
		docker.forgetCalls()
		_, err := docker.engine().Resolve(t.Context(), word)
		assert.NilError(t, err)
		assert.DeepEqual(t, docker.calls, want)
	}
}

func TestResolveDoesNotTakeWhatInheritedLabelsForASnapshot(t *testing.T) {
	docker, made := withSnapshots(t, "web:one")
	child := docker.addImage("cua-snapshot/web:mine", &container.Config{Labels: docker.findImage(made[0].ImageID).config.Labels})
	for _, word := range []string{"mine", "web:mine", "cua-snapshot/web:mine"} {
		_, err := docker.engine().Resolve(t.Context(), word)
		assert.Assert(t, err != nil, word)
	}
	child.config = &container.Config{Labels: map[string]string{labels.KeyID: "nonsense"}}
	_, err := docker.engine().Resolve(t.Context(), "web:mine")
	assert.ErrorContains(t, err, "read snapshot cua-snapshot/web:mine")
	_, err = docker.engine().Resolve(t.Context(), "one")
	assert.NilError(t, err)
}

func TestReferencesForCompletion(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "db")
	words, err := docker.engine().References(t.Context(), "web")
	assert.NilError(t, err)
	assert.DeepEqual(t, words, []string{"web:" + string(made[0].ID), "web:latest", "web:one"})
	words, err = docker.engine().References(t.Context(), string(made[1].ID)[:15])
	assert.NilError(t, err)
	assert.DeepEqual(t, words, []string{string(made[1].ID)})
	names, err := docker.engine().Containers(t.Context())
	assert.NilError(t, err)
	assert.DeepEqual(t, names, []string{"web", "db"})
}
