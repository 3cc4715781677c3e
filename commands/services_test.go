package commands

import (
	"context"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func TestAServiceStandsForItsContainer(t *testing.T) {
	shop := catalog.Service{Name: "db", Container: "shop-db-1", Project: "shop", Directory: "/src/shop"}
	second := catalog.Service{Name: "db", Container: "shop-db-2", Project: "shop", Directory: "/src/shop"}
	other := catalog.Service{Name: "db", Container: "other-db-1", Project: "other", Directory: "/src/other"}
	for name, tc := range map[string]struct {
		services []catalog.Service
		project  string
		want     string // the container, or the error
		status   int
	}{
		"of this directory":    {[]catalog.Service{other, shop}, "", "shop-db-1", 0},
		"of the variable":      {[]catalog.Service{other, shop}, "other", "other-db-1", 0},
		"of another project":   {[]catalog.Service{other}, "", "db is a service of project other: other-db-1", 1},
		"with several of them": {[]catalog.Service{shop, second}, "", "db is a service of project shop: shop-db-2", 1},
		"that does not exist":  {nil, "", "no such container: db", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.environment = map[string]string{projectVariable: tc.project}
			f.engine.containers = []string{"shop-db-1", "other-db-1"}
			f.engine.services = tc.services
			f.engine.created = capture.Created{Snapshot: firstSnapshot()}
			assert.Equal(t, f.run(t, "create", "db"), tc.status)
			if tc.status == 0 {
				assert.Equal(t, f.engine.create.Container, tc.want)
				return
			}
			assert.Assert(t, is.Contains(f.stderr.String(), tc.want))
		})
	}
}

// After docker compose down there are only snapshots.
func TestAServiceOfAProjectThatIsDown(t *testing.T) {
	shop := catalog.Service{Name: "db", Container: "shop-db-1", Project: "shop", Directory: "/src/shop"}
	second := catalog.Service{Name: "db", Container: "shop-db-2", Project: "shop", Directory: "/src/shop"}
	other := catalog.Service{Name: "db", Container: "other-db-1", Project: "other", Directory: "/src/other"}
	for name, tc := range map[string]struct {
		running, former []catalog.Service
		fails           string
	}{
		"of this directory":                      {nil, []catalog.Service{shop, other}, ""},
		"and another project has such a service": {[]catalog.Service{other}, []catalog.Service{other, shop}, ""},
		"with several containers":                {nil, []catalog.Service{shop, second}, "db is a service of project shop: shop-db-2"},
		"of another project":                     {nil, []catalog.Service{other}, "db is a service of project other: other-db-1"},
	} {
		f := newFixture()
		eng := &serviceEngine{}
		eng.services, eng.former, eng.containers = tc.running, tc.former, []string{"some"}
		f.evil = eng
		status := f.run(t, "restore", "--replace", "--force", "db:before")
		if tc.fails == "" {
			assert.Equal(t, status, 0, "%s: %s", name, f.stderr.String())
			assert.Equal(t, eng.asked[len(eng.asked)-1], "shop-db-1:before", name)
			continue
		}
		assert.Equal(t, status, 1, name)
		assert.Assert(t, is.Contains(f.stderr.String(), tc.fails), name)
	}
}

// serviceEngine knows the snapshots of one container, shop-db-1.
type serviceEngine struct {
	printingEngine
	asked []string
}

func (e *serviceEngine) find(word string) (catalog.Snapshot, error) {
	e.asked = append(e.asked, word)
	if word != "shop-db-1" && word != "shop-db-1:before" {
		return catalog.Snapshot{}, &catalog.NotFoundError{Word: word}
	}
	return firstSnapshot(), nil
}

func (e *serviceEngine) List(_ context.Context, o catalog.ListOptions, _ plan.Progress) ([]catalog.Snapshot, error) {
	s, err := e.find(o.Container)
	return []catalog.Snapshot{s}, err
}

func (e *serviceEngine) Resolve(_ context.Context, word string) (catalog.Snapshot, error) {
	return e.find(word)
}

func (e *serviceEngine) Restore(_ context.Context, o runconfig.RestoreOptions, _ plan.Progress) (build.Restored, error) {
	_, err := e.find(o.Snapshot)
	return restoredCopy(), err
}

func (e *serviceEngine) Replace(_ context.Context, o replace.Options, _ plan.Progress) (replace.Result, error) {
	_, err := e.find(o.Snapshot)
	return somethingReplaced(), err
}

func (e *serviceEngine) Remove(_ context.Context, words []string, _ removal.Options, _ plan.Progress) []removal.Removal {
	return convert(words, func(word string) removal.Removal {
		s, err := e.find(word)
		return removal.Removal{Word: word, Snapshot: s, Err: err}
	})
}

func (e *serviceEngine) Recover(_ context.Context, container string, _ plan.Progress) ([]replace.Recovery, error) {
	if _, err := e.find(container); err == nil {
		return []replace.Recovery{{Container: container, Text: "thawed"}}, nil
	}
	return nil, nil
}

func TestEveryCommandTakesAService(t *testing.T) {
	here := catalog.Service{Name: "db", Container: "shop-db-1", Project: "shop", Directory: "/src/shop"}
	elsewhere := catalog.Service{Name: "db", Container: "shop-db-1", Project: "other", Directory: "/src/other"}
	for _, args := range []string{
		"ls db", "inspect db:before", "inspect --files db", "restore db", "restore db:before",
		"restore --replace --force db:before", "restore --replace --dry-run db", "rm db:before", "recover db",
	} {
		t.Run(args, func(t *testing.T) {
			word := args[strings.LastIndex(args, " ")+1:]
			run := func(service catalog.Service, containers ...string) (status int, stderr string, asked []string) {
				f := newFixture()
				eng := &serviceEngine{}
				eng.services, eng.containers = []catalog.Service{service}, append(containers, "shop-db-1")
				f.evil = eng
				status = f.run(t, strings.Fields(args)...)
				return status, f.stderr.String(), eng.asked
			}
			status, stderr, asked := run(here)
			assert.Equal(t, status, 0, stderr)
			assert.Equal(t, asked[len(asked)-1], "shop-"+strings.Replace(word, "db", "db-1", 1))

			status, stderr, _ = run(elsewhere)
			assert.Equal(t, status, 1)
			assert.Assert(t, is.Contains(stderr, "db is a service of project other: shop-db-1"))

			_, stderr, asked = run(here, "db") // there is a container of that name
			assert.DeepEqual(t, asked, []string{word})
			assert.Assert(t, !is.Contains(stderr, "service")().Success())
		})
	}
}

func TestRemoveAllTakesAService(t *testing.T) {
	f := newFixture()
	eng := &serviceEngine{}
	eng.services, eng.containers = []catalog.Service{{Name: "db", Container: "shop-db-1", Directory: "/src/shop"}}, []string{"shop-db-1"}
	f.evil = eng
	f.run(t, "rm", "--all", "--force", "db")
	assert.DeepEqual(t, eng.asked, []string{"db", "shop-db-1", "web:" + string(firstID)})
}
