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
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// Engine creates, lists, restores and removes snapshots on one Docker engine.
// It keeps no state and may be used by several goroutines.
type Engine struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
	pending  *pending.Finder
	build    *build.Builder
	removal  *removal.Remover
	replace  *replace.Replacer
	copies   *copies.Copier
	capture  *capture.Capturer
	volumes  archives.Service // nil: volumes are recorded, not archived
	given    bool             // the user has named the store: labels are not asked for it
	guard    dockerop.Guard   // nil: nobody watches over frozen containers
	now      func() time.Time
	random   io.Reader
}

// Option changes how an [Engine] works.
type Option func(*Engine)

// WithVolumes has an engine archive the content of volumes.
func WithVolumes(v archives.Service) Option { return func(e *Engine) { e.use(v) } }

// WithGivenStore has an engine look for archives in the store of its volumes only, and
// not in the one that the labels of a snapshot name.
func WithGivenStore() Option { return func(e *Engine) { e.given = true; e.use(e.volumes) } }

// WithGuard has frozen containers watched over.
func WithGuard(g dockerop.Guard) Option { return func(e *Engine) { e.watchedBy(g) } }

// New returns an engine that works through docker.
func New(docker dockerop.Docker, options ...Option) *Engine {
	e := newEngine(docker, time.Now, rand.Reader) //nolint:forbidigo // this is where the clock comes from
	for _, option := range options {
		option(e)
	}
	return e
}

// on is the same engine with other volumes.
func (e *Engine) on(volumes archives.Service) *Engine {
	other := *e
	other.use(volumes)
	return &other
}

// use has the engine and all its rooms work with volumes through v.
func (e *Engine) use(v archives.Service) {
	e.volumes = v
	e.pending = pending.New(e.docker, v)
	e.archives = archives.New(e.docker, e.catalog, v, e.given)
	e.build = build.New(e.docker, e.catalog, e.pending, v)
	e.capture = capture.New(capture.Rooms{
		Docker: e.docker, Catalog: e.catalog, Archives: e.archives, Pending: e.pending,
		Volumes: v, Guard: e.guard, Now: e.now, Random: e.random,
	})
	e.copies = copies.New(copies.Rooms{
		Docker: e.docker, Catalog: e.catalog, Archives: e.archives, Pending: e.pending,
		Build: e.build, Volumes: v, Now: e.now, Random: e.random,
	})
	e.removal = removal.New(e.docker, e.catalog, e.archives, e.pending, v)
	e.replace = replace.New(replace.Rooms{
		Docker: e.docker, Catalog: e.catalog, Archives: e.archives, Pending: e.pending,
		Build: e.build, Capture: e.capture, Removal: e.removal, Volumes: v, Guard: e.guard, Now: e.now,
	})
}

// watchedBy has frozen containers and restores in place watched over.
func (e *Engine) watchedBy(g dockerop.Guard) {
	e.guard = g
	e.use(e.volumes)
}

func newEngine(docker dockerop.Docker, now func() time.Time, random io.Reader) *Engine {
	calls := dockerop.New(docker)
	e := &Engine{docker: calls, catalog: catalog.New(calls, now, random), now: now, random: random}
	e.use(nil)
	return e
}
