package replace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// rollback puts everything back that a restore in place has changed. What was done is
// observed, not remembered, so it serves a transaction that failed as well as one of which
// only the journal is left, and doing it twice does no harm.
type rollback struct {
	engine  *Replacer
	journal pending.Journal
	p       plan.Progress
	when    timing
	made    []string  // volumes that this restore has made, and that go
	data    dataState // what the other volumes hold

	settled    bool  // of containers that are kept: from here on they may be started
	notStarted error // why others could not be started again
}

// timing says when a restore in place is rolled back.
type timing int

const (
	atOnce timing = iota // by the transaction that failed
	later                // by another process, after whatever has happened meanwhile
)

// rollBackLater is the rollback of an operation of which only the journal is left: it may
// have come anywhere.
func (rp *Replacer) rollBackLater(j pending.Journal, p plan.Progress) *rollback {
	b := &rollback{engine: rp, journal: j, p: p, when: later, made: j.Made, data: dataMixed}
	if len(j.Volumes) == 0 {
		b.data = dataSafe
	}
	return b
}

// runAfterStop rolls back when the engine may still be stopping a container for a client
// that is gone.
func (b *rollback) runAfterStop(ctx context.Context) (string, error) {
	if err := b.awaitStop(context.WithoutCancel(ctx)); err != nil {
		return "", err
	}
	return b.run(ctx)
}

// run rolls back; it works after Ctrl-C. It returns what was put back, for people. What
// could not be put back is an [UndoError]. If everything is back but a sharer that does not start
// again, a [NotStartedError] comes with the text.
func (b *rollback) run(ctx context.Context) (string, error) {
	ctx = context.WithoutCancel(ctx)
	text, err := b.putBack(ctx)
	if thawErr := b.engine.thawCopy(ctx, b.journal.Copy); thawErr != nil {
		b.notStarted = errors.Join(b.notStarted, thawErr)
	}
	switch {
	case err == nil && b.notStarted == nil:
		return text, nil
	case err == nil:
		return text, &NotStartedError{Container: b.journal.Name(), Err: b.notStarted}
	}
	if b.data == dataSafe && (b.settled || !b.journal.Keeps) { // else they would work with a mixture
		err = errors.Join(err, b.engine.startOthers(ctx, b.journal.Others, b.p))
	}
	return "", &UndoError{Container: b.journal.Name(), State: b.account(ctx), Err: err}
}

// remains are what there is of a member when it is rolled back.
type remains struct {
	pending.Member
	old   *container.InspectResponse // nil: it is gone
	made  *container.InspectResponse // the new container; nil: there is none
	stays bool                       // nothing of the old one is left, so the new one stays
	id    string                     // of the container that has its name back
}

// isInPlace tells whether the old container has its name.
func (r *remains) isInPlace() bool {
	return r.old != nil && dockerop.ContainerName(*r.old) == r.OldName
}

// putBack does the work of run.
func (b *rollback) putBack(ctx context.Context) (string, error) {
	members, err := b.findOld(ctx)
	if err != nil {
		return "", err
	}
	// Volumes are written when all have stepped aside, and names are given back when the volumes are back.
	anyInPlace := slices.ContainsFunc(members, (*remains).isInPlace)
	mixed := !anyInPlace
	if b.journal.Keeps {
		if mixed, err = b.hasMixedVolumes(ctx, members); err != nil {
			return "", err
		}
	}
	switch {
	case !mixed:
		b.data = dataSafe
	case b.journal.Keeps:
		b.data = dataMixed
	}
	if err := b.engine.docker.Discard(ctx, b.journal.Worker); err != nil {
		return "", fmt.Errorf("end the worker that writes the volumes: %w", err)
	}
	if err := b.engine.docker.Discard(ctx, b.journal.TrialName()); err != nil {
		return "", fmt.Errorf("remove container %s: %w", b.journal.TrialName(), err)
	}
	if err := b.findNew(ctx, members); err != nil {
		return "", err
	}
	if !slices.ContainsFunc(members, func(r *remains) bool { return !r.stays }) {
		b.notStarted = b.engine.startOthers(ctx, b.journal.Others, b.p)
		return textOf(members, (*remains).whyItStays), nil
	}
	if err := b.removeNew(ctx, members); err != nil {
		return "", err
	}
	if mixed {
		err := b.freeVolumes(ctx, members)
		if errors.Is(err, errMixed) {
			return b.leaveStopped(ctx, members)
		}
		if err != nil {
			return "", err
		}
	}
	if b.journal.Keeps {
		if err := b.settleKept(ctx, members); err != nil {
			return "", err
		}
		b.settled = true
	}
	b.data = dataSafe
	b.notStarted = b.engine.startOthers(ctx, b.journal.Others, b.p) // a container may need one of them to start
	return b.standUp(ctx, members)
}

// freeVolumes puts the volumes back, if nobody uses them.
func (b *rollback) freeVolumes(ctx context.Context, members []*remains) error {
	if b.when == later {
		if err := b.checkFree(ctx); err != nil {
			return err
		}
	}
	return b.putVolumesBack(ctx, members)
}

// textOf says something of each member.
func textOf(members []*remains, say func(*remains) string) string {
	lines := make([]string, 0, len(members))
	for _, r := range members {
		if line := say(r); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// findNew finds the new containers, and those of them that cannot be rolled back: the old container is
// gone, and there is no safety snapshot to make it from again. Somebody must have removed it, because we
// remove it last of all.
func (b *rollback) findNew(ctx context.Context, members []*remains) (err error) {
	for _, r := range members {
		if r.made, err = b.engine.findMade(ctx, b.journal, r.Name, r.Snapshot); err != nil {
			return err
		}
		if r.old != nil || r.Old == "" || r.made == nil {
			continue
		}
		safety, err := b.engine.findSafety(ctx, r.Member)
		if err != nil {
			return err
		}
		r.stays = safety == nil
	}
	return nil
}

// removeNew removes the new containers, those first that depend on others.
func (b *rollback) removeNew(ctx context.Context, members []*remains) error {
	for _, r := range slices.Backward(members) {
		if r.made == nil || r.stays {
			continue
		}
		if err := b.engine.docker.Discard(ctx, r.made.ID); err != nil {
			return fmt.Errorf("remove the new container %s: %w", r.made.ID[:dockerop.ShortID], err)
		}
	}
	return nil
}

func (r *remains) whyItStays() string {
	if !r.stays {
		return ""
	}
	return fmt.Sprintf("container %s (%s) was removed by somebody meanwhile, and there is no snapshot of it: the new container %s (%s) stays",
		r.OldName, r.Old[:dockerop.ShortID], r.Name, r.made.ID[:dockerop.ShortID])
}

// findSafety finds the safety snapshot; nil: none was taken, or it is gone.
func (rp *Replacer) findSafety(ctx context.Context, m pending.Member) (*catalog.Snapshot, error) {
	if m.Safety == "" {
		return nil, nil
	}
	safety, err := rp.catalog.Resolve(ctx, string(m.Safety))
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("safety snapshot: %w", err)
	}
	return &safety, nil
}

// finishReplace finishes a settled restore in place, done or rolled back: it starts the sharers,
// and removes each old container unless that is back under its name.
func (rp *Replacer) finishReplace(ctx context.Context, j pending.Journal, p plan.Progress) error {
	err := rp.startOthers(ctx, j.Others, p)
	if err != nil {
		err = &NotStartedError{Container: j.Name(), Err: err}
	}
	if j.Live {
		err = errors.Join(err, rp.thawRestored(ctx, j))
	}
	if j.Keeps {
		return err
	}
	for _, m := range slices.Backward(j.Members) {
		err = errors.Join(err, rp.removeReplaced(ctx, j, m, p))
	}
	return errors.Join(err, rp.finishCopy(ctx, j))
}

// removeReplaced removes an old container, unless it is back under its name.
func (rp *Replacer) removeReplaced(ctx context.Context, j pending.Journal, m pending.Member, p plan.Progress) error {
	old, err := rp.docker.InspectIfThere(ctx, m.Old)
	if err != nil || old == nil || m.OneShot || dockerop.ContainerName(*old) != m.Aside {
		return err
	}
	made, err := rp.findMade(ctx, j, m.Name, m.Snapshot)
	if err != nil {
		return err
	}
	if made == nil { // never the last one
		p.Warn("remove", fmt.Sprintf("the replaced container %s is kept, because there is no container %s that took its place", m.Aside, m.Name))
		return nil
	}
	err = rp.docker.ContainerRemove(ctx, m.Old, container.RemoveOptions{Force: true})
	if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
		return fmt.Errorf("the replaced container %s could not be removed: %w", m.Aside, err)
	}
	return nil
}

// findOld finds the old containers. If one was made with --rm and has ended, findOld waits until
// the engine has removed it.
func (b *rollback) findOld(ctx context.Context) ([]*remains, error) {
	var members []*remains
	for _, m := range b.journal.Members {
		old, err := b.engine.docker.InspectIfThere(ctx, m.Old)
		if err != nil {
			return nil, err
		}
		if old != nil && m.OneShot && !old.State.Running {
			if err := b.engine.docker.AwaitGone(ctx, m.Old); err != nil {
				return nil, err
			}
			old = nil
		}
		members = append(members, &remains{Member: m, old: old})
	}
	return members, nil
}

// findMade finds the container of that name, if it was made from that snapshot and is no old one.
func (rp *Replacer) findMade(ctx context.Context, j pending.Journal, name string, from labels.ID) (*container.InspectResponse, error) {
	found, err := rp.docker.InspectIfThere(ctx, name)
	if err != nil || found == nil || j.Replaces(found.ID) || found.Config.Labels[labels.KeyRestoredFrom] != string(from) {
		return nil, err
	}
	return found, nil
}

// errMixed means that the volumes cannot be put back, because there is no safety snapshot.
var errMixed = errors.New("there is no safety snapshot")

// putVolumesBack restores the volumes from the safety snapshots. It first stops the containers
// that were stopped before, because a restart of the engine may have started them.
func (b *rollback) putVolumesBack(ctx context.Context, members []*remains) error {
	for _, r := range slices.Backward(members) {
		if b.journal.Live {
			if err := b.engine.freeze(ctx, r.Member, b.p); err != nil {
				return err
			}
			continue
		}
		if r.old != nil && r.old.State.Running {
			if err := b.engine.docker.Stop(ctx, r.old.ID, r.old.State.Paused, nil); err != nil {
				return fmt.Errorf("stop container %s: %w", r.Aside, err)
			}
		}
	}
	for _, o := range b.journal.Others {
		if err := b.engine.docker.Stop(ctx, o.ID, false, nil); err != nil {
			return fmt.Errorf("stop container %s: %w", o.Name, err)
		}
	}
	if b.data == dataSafe {
		return nil
	}
	taken, err := b.safeties(ctx, members)
	if err != nil {
		return err
	}
	targets := archivesOf(taken, b.journal.Volumes)
	if len(targets) == 0 {
		return nil
	}
	volumes, err := b.engine.build.FillVolumes(ctx, targets, volumebackup.WorkerOptions{Name: b.journal.Worker, Task: volumebackup.Replace{}}, b.p) // what is lost was lost before
	return errors.Join(err, volumes.Close())
}

// safeties are the safety snapshots. One that is missing is an error, unless its container is gone as
// well: then it ended by itself before it was captured, and the volumes were not touched.
func (b *rollback) safeties(ctx context.Context, members []*remains) ([]catalog.Snapshot, error) {
	var taken []catalog.Snapshot
	for _, r := range members {
		if r.Safety == "" {
			return nil, errMixed
		}
		safety, err := b.engine.findSafety(ctx, r.Member)
		switch {
		case err != nil:
			return nil, err
		case safety != nil:
			taken = append(taken, *safety)
		case r.old != nil:
			return nil, fmt.Errorf("safety snapshot: %w", &catalog.NotFoundError{Word: string(r.Safety)})
		}
	}
	return taken, nil
}

// archivesOf returns the archives of some volumes in snapshots, one for each.
func archivesOf(all []catalog.Snapshot, volumes []string) []volumebackup.Target {
	var targets []volumebackup.Target
	for _, s := range all {
		for _, m := range s.Mounts {
			key := m.Key()
			known := slices.ContainsFunc(targets, func(t volumebackup.Target) bool { return t.Volume == key })
			if m.Archive != nil && slices.Contains(volumes, key) && !known {
				targets = append(targets, volumebackup.Target{
					Snapshot: string(s.ID), Archive: m.Archive.Index, Root: m.Archive.Root, Volume: key, Excluded: m.Archive.Excluded,
				})
			}
		}
	}
	return targets
}

// abandon ends the worker that holds the lock, and leaves its container with the journal. It
// waits until the engine shows that, or the next command would think that the operation is
// still under way.
func (rp *Replacer) abandon(ctx context.Context, lock archives.Lock) {
	_ = lock.Abandon()
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	_ = dockerop.Poll(ctx, func() (bool, error) { // that it goes on for a while does no harm
		c, err := rp.docker.InspectIfThere(ctx, lock.ID())
		return c == nil || !c.State.Running, err
	})
}

// checkFree finds containers that began to use a volume after the interruption. They are not
// stopped, because nobody asked for that.
func (b *rollback) checkFree(ctx context.Context) error {
	if b.data == dataSafe {
		return nil
	}
	storage, err := storage.Observe(ctx, b.engine.docker, b.p)
	if err != nil {
		return err
	}
	users, err := b.engine.build.UsersOf(ctx, storage, b.journal.Volumes)
	if err != nil {
		return err
	}
	var failed error
	for _, c := range users {
		if b.journal.Replaces(c.ID) || b.journal.Copy.Is(c.ID) || slices.ContainsFunc(b.journal.Others, func(o pending.Other) bool { return o.ID == c.ID }) {
			continue
		}
		for _, name := range storage.UsesOf(c, b.journal.Volumes) {
			failed = errors.Join(failed, &InUseError{Volume: name, User: dockerop.SummaryName(c), Container: b.journal.Name()})
		}
	}
	return failed
}
