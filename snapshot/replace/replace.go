package replace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Replace brings snapshots back in place: each container becomes what it was, and so do its
// volumes. It is a transaction. Everything is checked before anything is touched; safety snapshots
// are taken; and whatever fails afterwards, the same containers run again with the data that they
// had. The results are in the order of the options.
func (rp *Replacer) Replace(ctx context.Context, all []Options, p plan.Progress) ([]Result, error) {
	how, err := sharedBy(all)
	if err != nil {
		return nil, err
	}
	watch, tried := plan.StartWatch(rp.now), Leftovers{}
	for {
		replaced, err := rp.tryReplace(ctx, all, how, watch, tried, p)
		if !errors.Is(err, pending.ErrMoved) {
			return replaced, err
		}
	}
}

func (rp *Replacer) tryReplace(ctx context.Context, all []Options, how shared, watch *plan.Stopwatch, tried Leftovers, p plan.Progress) ([]Result, error) {
	// Inspect before listing journals, or an operation that starts in between would be missed.
	g, err := rp.findAll(ctx, all, how, p)
	if err != nil {
		return nil, err
	}
	asked := slices.Clone(g.members)
	if err := rp.makeWay(ctx, g, tried, p); err != nil {
		return nil, err
	}
	if err := rp.plan(ctx, g, p); err != nil {
		return nil, err
	}
	if err := g.checkSelf(dockerop.OwnMounts()); err != nil {
		return nil, err
	}
	problems := g.problems()
	if len(problems) == 0 {
		if err := rp.checkPaths(ctx, g, p); err != nil {
			return nil, err
		}
		for _, m := range g.members {
			m.noteBinds(p)
			m.noteLost(p)
		}
	}
	if rp, err = rp.atStoreOf(ctx, g); err != nil {
		return nil, err
	}
	for _, m := range g.members {
		if m.files, err = rp.archives.AttachmentsTo(m.Snapshot, m.options.Attachments); err != nil {
			return nil, err
		}
	}
	t := &transaction{engine: rp, group: g, asked: asked, p: p, watch: watch}
	defer t.close()
	if how.dryRun || len(problems) > 0 {
		return t.preview(ctx, problems)
	}
	for _, m := range g.members {
		defer m.files.Discard()
		if err := m.files.Fetch(ctx, p); err != nil {
			return nil, err
		}
	}
	return t.run(ctx)
}

// atStoreOf returns a replacer that works in the store that holds what is restored. If no volume is
// restored, only the safety snapshots need a store: the one of new snapshots.
func (rp *Replacer) atStoreOf(ctx context.Context, g *group) (*Replacer, error) {
	var from *member
	var store archives.Service
	for _, m := range g.members {
		if len(m.written()) == 0 || m.isPlanned() {
			continue
		}
		volumes, err := rp.archives.At(ctx, m.Snapshot)
		switch {
		case err != nil:
			return nil, err
		case from == nil:
			from, store = m, volumes
		case volumes.Store() != store.Store(): // a worker sees one
			return nil, fmt.Errorf("snapshots %s and %s cannot be restored together: their volumes are in different stores, %s and %s", from.Snapshot.Title(), m.Snapshot.Title(), store.Store(), volumes.Store())
		}
	}
	if from == nil {
		return rp, nil
	}
	return rp.inStore(store), nil
}

// inStore is the same with volumes that are in another store.
func (rp *Replacer) inStore(volumes archives.Service) *Replacer {
	other := *rp
	other.volumes = volumes
	other.build, other.capture = rp.build.InStore(volumes), rp.capture.InStore(volumes)
	return &other
}

// scope is the containers and volumes that the operation concerns.
func (g *group) scope() pending.Scope {
	var about pending.Scope
	for _, m := range g.members {
		about.Words = append(about.Words, m.Name)
		about.Volumes = dockerop.Distinct(about.Volumes, pending.VolumesOf(m.Snapshot.Mounts))
		if m.Old != nil {
			about = about.Of(*m.Old)
		}
		if m.promoted != nil {
			about = about.Of(m.promoted.container)
			about.Volumes = dockerop.Distinct(about.Volumes, dockerop.MountedVolumes(m.promoted.container))
		}
	}
	about.Volumes = dockerop.Distinct(about.Volumes, g.mounted())
	return about
}

// makeWay waits for restores in place of the same containers, or of sharers of their volumes, and
// recovers those that were interrupted. A dry run changes nothing, so there they are an error.
func (rp *Replacer) makeWay(ctx context.Context, g *group, tried Leftovers, p plan.Progress) error {
	found, err := rp.pending.Replacements(ctx, g.scope(), p)
	if found = tried.Untried(found); g.dryRun {
		found = slices.DeleteFunc(found, pending.Operation.IsLeftover)
	}
	if err != nil || len(found) == 0 {
		return err
	}
	if g.dryRun {
		return &PendingError{Container: found[0].Journal.Name()}
	}
	if err := tried.Conclude(ctx, rp, found, p); err != nil {
		return err
	}
	return pending.ErrMoved
}

// steps are what the transaction does for a member, in order.
func (g *group) steps(m *member) plan.Plan {
	steps := slices.Clone(m.notes)
	for _, other := range g.others {
		steps = append(steps, plan.Step{Op: plan.OpStopContainer, Target: other.Name, Reason: "shares a volume; it is started again"})
	}
	if m.isFrozen() {
		steps = append(steps, plan.Step{Op: plan.OpFreezeContainer, Target: m.Name})
	} else if m.Old != nil && m.Old.State.Running && !g.live {
		steps = append(steps, plan.Step{Op: plan.OpStopContainer, Target: dockerop.ContainerName(*m.Old), Reason: m.Old.ID[:dockerop.ShortID]})
	}
	if m.saves(g) {
		steps = append(steps, plan.Step{Op: plan.OpCreateSnapshot, Target: m.Name, Reason: "to go back to"})
	}
	if m.promoted != nil {
		name := dockerop.ContainerName(m.promoted.container)
		if m.promoted.container.State.Running && !m.promoted.container.State.Paused {
			steps = append(steps, plan.Step{Op: plan.OpFreezeContainer, Target: name})
		}
		steps = append(steps, plan.Step{Op: plan.OpCreateSnapshot, Target: name, Reason: "it becomes " + m.Name})
	}
	for _, v := range m.Volumes {
		switch {
		case !v.Exists:
			steps = append(steps, v.Step())
		case v.Archive != nil && labels.IsPathKey(v.Create.Name):
			steps = append(steps, plan.Step{Op: plan.OpRestoreBind, Target: v.Create.Name})
		case v.Archive != nil:
			steps = append(steps, plan.Step{Op: plan.OpRestoreVolume, Target: v.Create.Name})
		}
	}
	if !g.keeps {
		steps = append(steps, plan.Step{Op: plan.OpCreateContainer, Target: m.Name, Reason: "from " + m.Snapshot.Ref()})
	}
	if m.isFrozen() {
		steps = append(steps, plan.Step{Op: plan.OpThawContainer, Target: m.Name})
	}
	if m.Start {
		steps = append(steps, plan.Step{Op: plan.OpStartContainer, Target: m.Name})
	}
	if m.Pause {
		steps = append(steps, plan.Step{Op: plan.OpPauseContainer, Target: m.Name})
	}
	if m.Old != nil && !g.keeps {
		steps = append(steps, plan.Step{Op: plan.OpRemoveContainer, Target: dockerop.ContainerName(*m.Old), Reason: "replaced: " + m.Old.ID[:dockerop.ShortID]})
	}
	if m.promoted != nil {
		steps = append(steps, plan.Step{Op: plan.OpRemoveContainer, Target: dockerop.ContainerName(m.promoted.container), Reason: "the copy, with its volumes"})
	}
	return steps
}
