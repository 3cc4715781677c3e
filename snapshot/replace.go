package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/docker/docker/api/types/container"

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
func (e *Engine) Replace(ctx context.Context, o ReplaceOptions, p plan.Progress) (Replaced, error) {
	if e.volumes == nil {
		return Replaced{}, errors.New("nothing here can restore volumes")
	}
	watch, tried := plan.StartWatch(e.now), leftovers{}
	for {
		replaced, err := e.tryReplace(ctx, o, watch, tried, p)
		if !errors.Is(err, pending.ErrMoved) {
			return replaced, err
		}
	}
}

func (e *Engine) tryReplace(ctx context.Context, o ReplaceOptions, watch *plan.Stopwatch, tried leftovers, p plan.Progress) (Replaced, error) {
	s, err := e.catalog.Resolve(ctx, o.Snapshot)
	if err != nil {
		return Replaced{}, err
	}
	// In this order: what is looked at first is not of an operation that shows afterwards.
	old, err := e.findReplaced(ctx, s, o.Name)
	if err != nil {
		return Replaced{}, err
	}
	if err := e.makeWay(ctx, s, old, o, tried, p); err != nil {
		return Replaced{}, err
	}
	p.Status("check", "checking what "+string(s.ID)+" needs")
	plan, err := e.planReplace(ctx, s, old, o, p)
	if err != nil {
		return Replaced{}, err
	}
	if err := plan.checkSelf(dockerop.OwnMounts()); err != nil {
		return Replaced{}, err
	}
	if len(plan.problems) == 0 {
		plan.noteKept(p)
	}
	if len(plan.written()) > 0 { // else only the safety snapshot needs a store: the one of new snapshots
		volumes, err := e.archives.At(ctx, s)
		if err != nil {
			return Replaced{}, err
		}
		e = e.on(volumes)
	}
	t := &transaction{engine: e, plan: plan, options: o, p: p, watch: watch}
	defer t.close()
	if o.DryRun || len(plan.problems) > 0 {
		return t.preview(ctx)
	}
	return t.run(ctx)
}

// makeWay waits for a restore in place of the same container, or of one that
// shares a volume, and takes back one that was interrupted. A dry run changes
// nothing, so there it is an error.
func (e *Engine) makeWay(ctx context.Context, s catalog.Snapshot, old *container.InspectResponse, o ReplaceOptions, tried leftovers, p plan.Progress) error {
	about := pending.Scope{Words: []string{o.Name}, Volumes: pending.VolumesOf(s.Mounts)}
	if o.Name == "" {
		about.Words = []string{s.Container.Name}
	}
	if old != nil {
		about = about.Of(*old)
		about.Volumes = dockerop.Distinct(about.Volumes, dockerop.MountedVolumes(*old))
	}
	pendingX, err := e.pending.Replacements(ctx, about, p)
	if pendingX = tried.untried(pendingX); o.DryRun {
		pendingX = slices.DeleteFunc(pendingX, pending.Operation.IsLeftover)
	}
	if err != nil || len(pendingX) == 0 {
		return err
	}
	if o.DryRun {
		return &PendingError{Container: pendingX[0].Journal.Name}
	}
	if err := tried.conclude(ctx, e, pendingX, p); err != nil {
		return err
	}
	return pending.ErrMoved
}

// saves tells whether there will be a safety snapshot: of a container that is
// gone, or dead, only if it has left volumes.
func (r *replacement) saves(o ReplaceOptions) bool {
	if o.NoSafety || r.old != nil && !r.isDead() {
		return !o.NoSafety
	}
	return slices.ContainsFunc(r.volumes, func(v runconfig.PlacedVolume) bool { return (v.Exists || v.Elsewhere) && v.Archive != nil })
}

// steps are what the transaction does, in order.
func (r *replacement) steps(o ReplaceOptions) plan.Plan {
	steps := slices.Clone(r.notes)
	for _, other := range r.others {
		steps = append(steps, plan.Step{Op: plan.OpStopContainer, Target: other.Name, Reason: "shares a volume; it is started again"})
	}
	if r.old != nil && r.old.State.Running {
		steps = append(steps, plan.Step{Op: plan.OpStopContainer, Target: dockerop.ContainerName(*r.old), Reason: r.old.ID[:dockerop.ShortID]})
	}
	if r.saves(o) {
		steps = append(steps, plan.Step{Op: plan.OpCreateSnapshot, Target: r.name, Reason: "to go back to"})
	}
	for _, v := range r.volumes {
		switch {
		case !v.Exists:
			steps = append(steps, v.Step())
		case v.Archive != nil:
			steps = append(steps, plan.Step{Op: plan.OpRestoreVolume, Target: v.Create.Name})
		}
	}
	steps = append(steps, plan.Step{Op: plan.OpCreateContainer, Target: r.name, Reason: "from " + r.snapshot.Ref()})
	if r.start {
		steps = append(steps, plan.Step{Op: plan.OpStartContainer, Target: r.name})
	}
	if r.pause {
		steps = append(steps, plan.Step{Op: plan.OpPauseContainer, Target: r.name})
	}
	if r.old != nil {
		steps = append(steps, plan.Step{Op: plan.OpRemoveContainer, Target: dockerop.ContainerName(*r.old), Reason: "replaced: " + r.old.ID[:dockerop.ShortID]})
	}
	return steps
}
