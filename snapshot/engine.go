package snapshot

import (
	"crypto/rand"
	"io"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runs"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
)

// Engine creates, lists, restores and removes snapshots on one Docker engine. It hands each
// request to the room that serves it, settles what is pending, and begins again if
// something has moved meanwhile. It keeps no state and may be used by several goroutines.
type Engine struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
	pending  *pending.Finder
	scale    *space.Scale
	removal  *removal.Remover
	diff     *diff.Differ
	extract  *extract.Extractor
	verify   *verify.Verifier
	capture  *capture.Capturer
	copies   *copies.Copier
	replace  *replace.Replacer
	keeper   *runs.Keeper
	runner   *runs.Runner
	now      func() time.Time
	random   io.Reader
}

// Option changes how an [Engine] works.
type Option func(*parts)

// WithGivenStore has an engine look for archives in the store of its volumes only, and
// not in the one that the labels of a snapshot name.
func WithGivenStore() Option { return func(p *parts) { p.given = true } }

// New returns an engine that works through docker, archives volumes with volumes, and has
// guard watch over what must not outlive this process.
func New(docker dockerop.Docker, volumes archives.Service, guard dockerop.Guard, options ...Option) *Engine {
	p := parts{docker: docker, volumes: volumes, guard: guard, now: time.Now, random: rand.Reader} //nolint:forbidigo // this is where the clock comes from
	for _, option := range options {
		option(&p)
	}
	return assemble(p)
}

// parts are what an engine is made of.
type parts struct {
	docker  dockerop.Docker
	volumes archives.Service
	given   bool // the user has named the store: labels are not asked for it
	guard   dockerop.Guard
	now     func() time.Time
	random  io.Reader
}

// assemble makes the rooms, each from those below it.
func assemble(p parts) *Engine {
	e := &Engine{docker: dockerop.New(p.docker, p.volumes.OpenFreezer), now: p.now, random: p.random}
	e.catalog = catalog.New(e.docker, p.now, p.random)
	e.archives = archives.New(e.docker, e.catalog, p.volumes, p.given)
	e.diff = diff.New(e.docker, e.catalog, e.archives)
	e.extract = extract.New(e.docker, e.catalog, e.archives)
	e.pending = pending.New(e.docker, p.volumes)
	e.verify = verify.New(e.docker, e.catalog, e.archives, p.random)
	e.scale = space.New(e.docker, e.archives)
	e.removal = removal.New(removal.Rooms{
		Docker: e.docker, Catalog: e.catalog, Archives: e.archives, Pending: e.pending, Scale: e.scale, Volumes: p.volumes, Now: p.now,
	})
	builder := build.New(e.docker, e.catalog, e.pending, p.volumes, p.now)
	e.capture = capture.New(capture.Rooms{
		Docker: e.docker, Catalog: e.catalog, Archives: e.archives, Pending: e.pending,
		Volumes: p.volumes, Guard: p.guard, Now: p.now, Random: p.random,
	})
	e.copies = copies.New(copies.Rooms{
		Docker: e.docker, Catalog: e.catalog, Archives: e.archives, Pending: e.pending,
		Build: builder, Volumes: p.volumes, Now: p.now, Random: p.random,
	})
	e.replace = replace.New(replace.Rooms{
		Docker: e.docker, Catalog: e.catalog, Archives: e.archives, Pending: e.pending,
		Build: builder, Capture: e.capture, Removal: e.removal, Volumes: p.volumes, Guard: p.guard, Now: p.now,
	})
	e.keeper = runs.NewKeeper(e.docker, e.catalog, p.now, p.random)
	e.runner = runs.NewRunner(runs.Rooms{
		Docker: e.docker, Pending: e.pending, Keeper: e.keeper, Create: e.Create, Replace: e.Replace, Limit: e.limit, Now: p.now, Random: p.random,
	})
	return e
}
