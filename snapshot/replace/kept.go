package replace

import (
	"context"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// If only volumes go back, the containers stay: they stop, bear another name while their volumes are written, have
// their own name again when all of that is done, and are started. So these are the states that whoever finds the
// journal may find:
//
//	another name, safety snapshots     the volumes may hold a mixture
//	their names, safety snapshots      the volumes are whole: what they held, or what was to be restored
//	their names, no safety snapshot    nothing was changed yet, or all was rolled back
//
// A rollback removes the safety snapshots when the volumes are back, and only then starts anything.

// findKeptProblems finds what stands against writing volumes of a container that stays.
func (m *member) findKeptProblems(g *group, around runconfig.Surroundings, reserved []string) {
	kinds := keptProblems{noOriginal: plan.ProblemNoOriginal, stopRemoves: plan.ProblemStopRemoves, notMounted: plan.ProblemNotMounted}
	if m.options.Lost { // the root filesystem cannot be put back as well
		kinds = keptProblems{noOriginal: plan.ProblemLostNoTarget, stopRemoves: plan.ProblemLostOneShot, notMounted: plan.ProblemLostUnused}
	}
	if m.Old == nil {
		m.problem(kinds.noOriginal, m.Name, fmt.Sprintf("container %s is gone, so it cannot be kept while only volumes go back", m.Name))
		return
	}
	if runconfig.IsOneShot(*m.Old) && !g.live {
		m.problem(kinds.stopRemoves, m.Name, fmt.Sprintf("container %s is removed when it stops (--rm)", m.Name))
	}
	for _, v := range m.Volumes {
		if v.Archive != nil && !slices.Contains(dockerop.MountedKeys(*m.Old), v.Create.Name) {
			m.problem(kinds.notMounted, v.Create.Name, fmt.Sprintf("container %s does not mount %s", m.Name, labels.DescribeKey(v.Create.Name)))
		}
	}
	if m.options.Lost && len(m.chosenMounts()) == 0 {
		m.problem(plan.ProblemLostUnused, m.Name, fmt.Sprintf("container %s writes to no volume that snapshot %s holds", m.Name, m.Snapshot.Title()))
	}
	if !g.live {
		m.swarmTask()
	}
	g.findHolders(m, around.Containers)
	m.peerProblems(g, around)
	m.lostPeers(g, around)
	if m.foreign {
		m.problems = append(m.problems, around.ForeignProblemsInPlace(&runconfig.Spec{}, m.chosenMounts(), m.Old, m.options.RestoreOptions, reserved...)...)
	}
}

// lostPeers finds containers that are gone and that a container that stays needs: once it has stopped, it cannot be started.
func (m *member) lostPeers(g *group, around runconfig.Surroundings) {
	if g.live || !m.Start {
		return
	}
	for _, peer := range m.Spec.Peers() {
		if around.Find(peer) == "" {
			m.problem(plan.ProblemPeerGone, m.Name, m.Spec.Needs(peer)+", which is gone, so it cannot be started again")
		}
	}
}

// keptProblems are the kinds of problems with a container that stays.
type keptProblems struct{ noOriginal, stopRemoves, notMounted plan.ProblemKind }

// chosenMounts are the volumes that go back.
func (m *member) chosenMounts() []runconfig.PlacedVolume {
	return slices.DeleteFunc(slices.Clone(m.mounts), func(v runconfig.PlacedVolume) bool { return v.Archive == nil })
}

// startKept brings the containers back that were only stopped, and sees to it that they come up.
func (t *transaction) startKept(ctx context.Context) error {
	for i, m := range t.journal.Members {
		if err := t.engine.docker.ContainerRename(context.WithoutCancel(ctx), m.Old, m.OldName); err != nil {
			return fmt.Errorf("rename container %s back to %s: %w", m.Aside, m.OldName, err)
		}
		t.members[i].newID = m.Old
	}
	for _, m := range t.journal.Members {
		if err := t.engine.returnPolicy(ctx, m); err != nil {
			return err
		}
	}
	return t.bringUp(ctx, t.members)
}

// returnPolicy gives an old container the restart policy back that it had.
func (rp *Replacer) returnPolicy(ctx context.Context, m pending.Member) error {
	if m.Policy == "" {
		return nil
	}
	return rp.docker.SetRestartPolicy(ctx, m.Old, container.RestartPolicy{Name: container.RestartPolicyMode(m.Policy), MaximumRetryCount: m.Retries})
}

// findKept returns the containers that an operation keeps, if their volumes may be whole and what was to be restored:
// all have their names, and a safety snapshot was taken.
func (rp *Replacer) findKept(ctx context.Context, j pending.Journal) ([]container.InspectResponse, error) {
	var all []container.InspectResponse
	if j.Live { // while it was frozen, its volumes were half written
		return nil, nil
	}
	for _, m := range j.Members {
		old, err := rp.docker.InspectIfThere(ctx, m.Old)
		if err != nil || old == nil || dockerop.ContainerName(*old) != m.OldName {
			return nil, err
		}
		safety, err := rp.findSafety(ctx, m)
		if err != nil || safety == nil {
			return nil, err
		}
		all = append(all, *old)
	}
	return all, nil
}

// startKeptLater starts the kept containers that the interrupted client did not come to start.
func (rp *Replacer) startKeptLater(ctx context.Context, m pending.Member, kept, dead container.InspectResponse) error {
	if err := rp.returnPolicy(ctx, m); err != nil {
		return err
	}
	if !m.Starts || kept.State.Running || dockerop.TimeOf(kept.State.StartedAt).After(dockerop.TimeOf(dead.Created)) {
		return nil
	}
	return dockerop.Describe(rp.docker.Start(ctx, m.Old), "start container "+m.Name)
}

// hasMixedVolumes finds out whether the volumes of containers that are kept may hold anything but what they held.
func (b *rollback) hasMixedVolumes(ctx context.Context, members []*remains) (bool, error) {
	if b.when == atOnce { // who has done it knows it
		return b.data == dataMixed, nil
	}
	for _, r := range members {
		if !r.isInPlace() {
			return true, nil
		}
		safety, err := b.engine.findSafety(ctx, r.Member)
		if err != nil || safety != nil {
			return true, err
		}
	}
	return false, nil
}

// settleKept ends the time in which the volumes count as mixed: the containers have their names, and the safety
// snapshots go. Before that, nothing may be started.
func (b *rollback) settleKept(ctx context.Context, members []*remains) error {
	for _, r := range members {
		if err := b.returnName(ctx, r); err != nil {
			return err
		}
	}
	return b.removeSafeties(ctx, members)
}
