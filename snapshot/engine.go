package snapshot

import (
	"crypto/rand"
	"io"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Engine creates, lists, restores and removes snapshots on one Docker engine.
// It keeps no state and may be used by several goroutines.
type Engine struct {
	docker  *dockerop.Engine
	catalog *catalog.Catalog
	volumes Volumes // nil: volumes are recorded, not archived
	given   bool    // the user has named the store: labels are not asked for it
	guard   Guard   // nil: nobody watches over frozen containers
	now     func() time.Time
	random  io.Reader
}

// Option changes how an [Engine] works.
type Option func(*Engine)

// WithVolumes has an engine archive the content of volumes.
func WithVolumes(v Volumes) Option { return func(e *Engine) { e.volumes = v } }

// WithGivenStore has an engine look for archives in the store of its volumes only, and
// not in the one that the labels of a snapshot name.
func WithGivenStore() Option { return func(e *Engine) { e.given = true } }

// WithGuard has frozen containers watched over.
func WithGuard(g Guard) Option { return func(e *Engine) { e.guard = g } }

// New returns an engine that works through docker.
func New(docker dockerop.Docker, options ...Option) *Engine {
	e := newEngine(docker, time.Now, rand.Reader) //nolint:forbidigo // this is where the clock comes from
	for _, option := range options {
		option(e)
	}
	return e
}

func newEngine(docker dockerop.Docker, now func() time.Time, random io.Reader) *Engine {
	calls := dockerop.New(docker)
	return &Engine{docker: calls, catalog: catalog.New(calls, now, random), now: now, random: random}
}
