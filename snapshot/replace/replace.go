package replace

import (
	"context"
	"errors"
	"slices"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// Replace brings a snapshot back in place: the container of that name becomes
// what it was, and so do its volumes. It is a transaction. Everything is checked
// before anything is touched; a safety snapshot is taken; and whatever fails
// afterwards, the same container runs again with the data that it had.
func (rp *Replacer) Replace(ctx context.Context, o Options, p plan.Progress) (Result, error) {
	watch, tried := plan.StartWatch(rp.now), Leftovers{}
	for {
		replaced, err := rp.tryReplace(ctx, o, watch, tried, p)
		if !errors.Is(err, pending.ErrMoved) {
			return replaced, err
		}
	}
}

func (rp *Replacer) tryReplace(ctx context.Context, o Options, watch *plan.Stopwatch, tried Leftovers, p plan.Progress) (Result, error) {
	s, err := rp.catalog.Resolve(ctx, o.Snapshot)
	if err != nil {
		return Result{}, err
	}
	// Inspect before listing journals, or an operation that starts in between would be missed.
	old, err := rp.findReplaced(ctx, s, o.Name)
	if err != nil {
		return Result{}, err
	}
	if err := rp.makeWay(ctx, s, old, o, tried, p); err != nil {
		return Result{}, err
	}
	p.Status("check", "checking what "+string(s.ID)+" needs")
	plan, err := rp.planReplace(ctx, s, old, o, p)
	if err != nil {
		return Result{}, err
	}
	if err := plan.checkSelf(dockerop.OwnMounts()); err != nil {
		return Result{}, err
	}
	if len(plan.problems) == 0 {
		plan.noteKept(p)
	}
	if len(plan.written()) > 0 { // else only the safety snapshot needs a store: the one of new snapshots
		volumes, err := rp.archives.At(ctx, s)
		if err != nil {
			return Result{}, err
		}
		rp = rp.inStore(volumes)
	}
	t := &transaction{engine: rp, Plan: plan, options: o, p: p, watch: watch}
	defer t.close()
	if o.DryRun || len(plan.problems) > 0 {
		return t.preview(ctx)
	}
	return t.run(ctx)
}

// inStore is the same with volumes that are in another store.
func (rp *Replacer) inStore(volumes archives.Service) *Replacer {
	other := *rp
	other.volumes = volumes
	other.build, other.capture = rp.build.InStore(volumes), rp.capture.InStore(volumes)
	return &other
}

// makeWay waits for restores in place of the same container, or of a sharer of its volumes, and
// recovers those that were interrupted. A dry run changes nothing, so there they are an error.
func (rp *Replacer) makeWay(ctx context.Context, s catalog.Snapshot, old *container.InspectResponse, o Options, tried Leftovers, p plan.Progress) error {
	about := pending.Scope{Words: []string{o.Name}, Volumes: pending.VolumesOf(s.Mounts)}
	if o.Name == "" {
		about.Words = []string{s.Container.Name}
	}
	if old != nil {
		about = about.Of(*old)
		about.Volumes = dockerop.Distinct(about.Volumes, dockerop.MountedVolumes(*old))
	}
	pendingX, err := rp.pending.Replacements(ctx, about, p)
	if pendingX = tried.Untried(pendingX); o.DryRun {
		pendingX = slices.DeleteFunc(pendingX, pending.Operation.IsLeftover)
	}
	if err != nil || len(pendingX) == 0 {
		return err
	}
	if o.DryRun {
		return &PendingError{Container: pendingX[0].Journal.Name}
	}
	if err := tried.Conclude(ctx, rp, pendingX, p); err != nil {
		return err
	}
	return pending.ErrMoved
}

// saves tells whether a safety snapshot will be taken. If the container is gone, that depends on
// whether it left volumes.
func (r *replacement) saves(o Options) bool {
	if o.NoSafety || r.Old != nil {
		return !o.NoSafety
	}
	return slices.ContainsFunc(r.Volumes, func(v runconfig.PlacedVolume) bool { return (v.Exists || v.Elsewhere) && v.Archive != nil })
}

// steps are what the transaction does, in order.
func (r *replacement) steps(o Options) plan.Plan {
	steps := slices.Clone(r.notes)
	for _, other := range r.Others {
		steps = append(steps, plan.Step{Op: plan.OpStopContainer, Target: other.Name, Reason: "shares a volume; it is started again"})
	}
	if r.Old != nil && r.Old.State.Running {
		steps = append(steps, plan.Step{Op: plan.OpStopContainer, Target: dockerop.ContainerName(*r.Old), Reason: r.Old.ID[:dockerop.ShortID]})
	}
	if r.saves(o) {
		steps = append(steps, plan.Step{Op: plan.OpCreateSnapshot, Target: r.Name, Reason: "to go back to"})
	}
	for _, v := range r.Volumes {
		switch {
		case !v.Exists:
			steps = append(steps, v.Step())
		case v.Archive != nil:
			steps = append(steps, plan.Step{Op: plan.OpRestoreVolume, Target: v.Create.Name})
		}
	}
	steps = append(steps, plan.Step{Op: plan.OpCreateContainer, Target: r.Name, Reason: "from " + r.Snapshot.Ref()})
	if r.Start {
		steps = append(steps, plan.Step{Op: plan.OpStartContainer, Target: r.Name})
	}
	if r.Pause {
		steps = append(steps, plan.Step{Op: plan.OpPauseContainer, Target: r.Name})
	}
	if r.Old != nil {
		steps = append(steps, plan.Step{Op: plan.OpRemoveContainer, Target: dockerop.ContainerName(*r.Old), Reason: "replaced: " + r.Old.ID[:dockerop.ShortID]})
	}
	return steps
}
