package copies

import (
	"context"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// DrillOptions says how a restore is rehearsed.
type DrillOptions struct {
	Snapshot string
	runconfig.Waiting
	// Check looks at the copy when its volumes are filled, before it is started.
	Check func(ctx context.Context, container string) error
}

// errRehearsed ends a restore of which nothing is to stay: it would have succeeded.
var errRehearsed = errors.New("the restore was rehearsed")

// Drill restores a snapshot as a copy that is connected to no network, starts it if it ran when it was
// captured, waits until it is up, and removes all of it, as after a restore that fails. So a drill that
// is interrupted is cleared up like a restore that is.
func (cp *Copier) Drill(ctx context.Context, o DrillOptions, p plan.Progress) error {
	_, err := cp.restoreAll(ctx, ForkOptions{
		RestoreOptions: runconfig.RestoreOptions{
			Snapshot: o.Snapshot, Networks: []string{"none"}, FreePorts: true, Waiting: o.Waiting,
		},
	}, &o, p)
	return withoutError(err, errRehearsed)
}

// checkFilled calls the check of a drill.
func (o *DrillOptions) checkFilled(ctx context.Context, container string) error {
	if o == nil || o.Check == nil {
		return nil
	}
	return o.Check(ctx, container)
}

// withoutError takes an error out of those that were joined to it.
func withoutError(err, expected error) error {
	if err == expected { //nolint:errorlint // what was wrapped is taken apart below
		return nil
	}
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return err
	}
	var rest []error
	for _, one := range joined.Unwrap() {
		rest = append(rest, withoutError(one, expected))
	}
	return errors.Join(rest...)
}
