package copies

import (
	"context"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// MaxForks is how many copies a fork may make: a worker mounts the volumes of all of them.
const MaxForks = 256

// ForkOptions says what a fork makes. Name is the beginning of the copies' names; empty: the
// original's name.
type ForkOptions struct {
	runconfig.RestoreOptions
	Count int // of copies; 0: it is no fork, but a restore of one
}

// Fork restores a snapshot as several new containers at once, each with volumes of its own, and reads
// the archives once. It makes all or none.
func (cp *Copier) Fork(ctx context.Context, o ForkOptions, p plan.Progress) ([]build.Restored, error) {
	if o.Count < 1 || o.Count > MaxForks {
		return nil, fmt.Errorf("cannot make %d copies: use a number from 1 to %d", o.Count, MaxForks)
	}
	o.FreePorts = true
	return cp.restoreAll(ctx, o, nil, p)
}

// nameOf returns the name of a copy, and what the names of its volumes have after the original's.
func (o ForkOptions) nameOf(s catalog.Snapshot, operation string, i int) (name, suffix string, err error) {
	suffix = copySuffix(operation)
	if o.Count == 0 {
		name, err = copyName(s, o.Name, suffix)
		return name, suffix, err
	}
	base := o.Name
	if base == "" {
		base = s.Container.Name
	}
	name, err = copyName(s, fmt.Sprintf("%s-%d", base, i+1), suffix)
	return name, fmt.Sprintf("%s-%d", suffix, i+1), err
}
