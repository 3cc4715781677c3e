package replace

import (
	"context"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// takeCopy captures the copy that is promoted. It reads most of it while everything runs. Then it has the originals
// saved and stopped, freezes the copy, and reads the rest. The copy stays frozen.
func (t *transaction) takeCopy(ctx context.Context) error {
	m := t.members[0]
	request := m.promoted.request
	request.Begin, request.Freezes = t.lendWorker(), true
	request.Quiesce = func(ctx context.Context) error {
		if err := t.saveAndStop(ctx); err != nil {
			return err
		}
		return t.engine.freezeCopy(ctx, *t.journal.Copy, t.p)
	}
	created, err := t.engine.capture.TakeWithin(ctx, request, []capture.Options{{
		Container: m.promoted.container.ID, As: &m.promoted.as, RootChecked: true, Exclude: capture.Exclude{Of: map[string]labels.Exclusions{}},
		Description: fmt.Sprintf("container %s, a copy of %s, promoted", t.journal.Copy.Name, t.journal.Copy.Of),
	}}, t.p)
	if err != nil {
		return fmt.Errorf("capture container %s: %w", t.journal.Copy.Name, err)
	}
	t.lost = t.lost || created[0].Incomplete
	if err := t.engine.fillIn(ctx, m, created[0].Snapshot); err != nil {
		return err
	}
	problems, err := t.checkArchives(ctx, t.targets())
	if err == nil && len(problems) > 0 {
		err = t.refuse(problems)
	}
	t.watch.Lap("copy")
	return err
}

// fillIn completes what was planned for a copy by its snapshot.
func (rp *Replacer) fillIn(ctx context.Context, m *member, s catalog.Snapshot) error {
	inherited, err := rp.build.ImageLabels(ctx, s)
	if err != nil {
		return err
	}
	m.Spec.BlankInherited(inherited)
	for i := range m.Volumes {
		v := &m.Volumes[i]
		at := slices.IndexFunc(s.Mounts, func(captured labels.Mount) bool { return captured.Name == v.Original })
		if v.Archive == nil || at < 0 {
			continue
		}
		v.Archive = s.Mounts[at].Archive
		m.Spec.MountCaptured(s.Mounts[at], v.NewVolume)
	}
	m.Snapshot, m.promoted.taken = s, true
	return nil
}

// freezeCopy freezes a copy, unless its user has paused it, or it does not run.
func (rp *Replacer) freezeCopy(ctx context.Context, c pending.Copy, p plan.Progress) error {
	return rp.freeze(ctx, pending.Member{Old: c.ID, OldName: c.Name}, p)
}

// thawCopy lets the copy run again that was to take a container's place, if there is one.
func (rp *Replacer) thawCopy(ctx context.Context, c *pending.Copy) error {
	if c == nil || !c.Running || c.Paused {
		return nil
	}
	found, err := rp.docker.InspectIfThere(ctx, c.ID)
	if err == nil && found != nil && found.State.Paused {
		_, err = rp.docker.Thaw(ctx, []string{c.ID})
	}
	return dockerop.Describe(err, "let container "+c.Name+" run again")
}

// checkCopy fails if the copy is not what it was when it was observed, or has run since it was captured.
func (t *transaction) checkCopy(ctx context.Context) error {
	pr := t.promoted()
	if pr == nil {
		return nil
	}
	now, err := t.engine.docker.InspectIfThere(ctx, pr.container.ID)
	if err != nil {
		return err
	}
	before := pr.container.State
	if !pr.taken {
		if now == nil || !pending.SameContainer(*now, pr.container) || now.State.Running != before.Running || now.State.Paused != before.Paused {
			return pending.ErrMoved
		}
		return nil
	}
	if now == nil || now.State.Running != before.Running || now.State.Running && !now.State.Paused {
		return fmt.Errorf("container %s was started, thawed or removed by somebody after it was captured", t.journal.Copy.Name)
	}
	return nil
}

// finishCopy removes the copy whose snapshot has taken a container's place, and the volumes that were made for it. If it
// came to nothing, the copy runs again.
func (rp *Replacer) finishCopy(ctx context.Context, j pending.Journal) error {
	c := j.Copy
	if c == nil {
		return nil
	}
	made, err := rp.findMade(ctx, j, j.Members[0].Name, j.Members[0].Snapshot)
	if err != nil {
		return err
	}
	if made == nil {
		return rp.thawCopy(ctx, c)
	}
	if err := rp.docker.Discard(ctx, c.ID); err != nil {
		return fmt.Errorf("the copy %s, which has taken the place of %s, could not be removed: %w", c.Name, j.Name(), err)
	}
	var own []string
	for _, name := range c.Volumes {
		v, err := rp.docker.VolumeInspect(ctx, name)
		switch {
		case cerrdefs.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("inspect volume %s: %w", name, err)
		case v.Labels[labels.KeyRestoredFrom] == string(c.Of):
			own = append(own, name)
		}
	}
	return rp.docker.RemoveVolumes(ctx, own)
}
