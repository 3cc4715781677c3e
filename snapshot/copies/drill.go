package copies

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
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

// rehearse makes of a restore one of which nothing stays, unless o is nil.
func (r *restore) rehearse(o *DrillOptions) {
	if o == nil {
		return
	}
	r.rehearsal = o
	r.together = true // the journal goes last, and takes all with it
	r.spec.Config.Labels[labels.KeyDrill] = r.operation
	for i := range r.volumes {
		r.volumes[i].Create.Labels[labels.KeyDrill] = r.operation
	}
}

// RemoveDrills removes the containers and volumes of drills whose client was killed, and returns the names of the
// containers. Those of a drill that is under way have a worker.
func (cp *Copier) RemoveDrills(ctx context.Context) (removed []string, err error) {
	left, err := cp.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labels.KeyDrill))})
	if err != nil {
		return nil, dockerop.Describe(err, "list copies of drills")
	}
	volumes, err := cp.docker.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labels.KeyDrill))})
	if err != nil {
		return nil, dockerop.Describe(err, "list volumes of drills")
	}
	if len(left)+len(volumes.Volumes) == 0 {
		return nil, nil
	}
	underWay, err := cp.fillingOperations(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range left {
		isOwn, ownErr := cp.isLabelledItself(ctx, c, labels.KeyDrill)
		if err = errors.Join(err, ownErr); !isOwn || underWay[c.Labels[labels.KeyDrill]] {
			continue
		}
		if removeErr := cp.docker.RemoveContainer(ctx, c.ID); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("remove container %s: %w", dockerop.SummaryName(c), removeErr))
			continue
		}
		removed = append(removed, dockerop.SummaryName(c))
	}
	for _, v := range volumes.Volumes {
		if operation := v.Labels[labels.KeyDrill]; !underWay[operation] {
			err = errors.Join(err, cp.removeOwnVolume(ctx, v.Name, operation))
		}
	}
	return removed, err
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
