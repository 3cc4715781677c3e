package replace

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	switch {
	case err == nil && b.notStarted == nil:
		return text, nil
	case err == nil:
		return text, &NotStartedError{Container: b.journal.Name, Err: b.notStarted}
	}
	if b.data == dataSafe { // else they would work with a mixture
		err = errors.Join(err, b.engine.startOthers(ctx, b.journal.Others, b.p))
	}
	return "", &UndoError{Container: b.journal.Name, State: b.account(ctx), Err: err}
}

// putBack does the work of run.
func (b *rollback) putBack(ctx context.Context) (string, error) {
	old, err := b.findOld(ctx)
	if err != nil {
		return "", err
	}
	if old != nil && dockerop.ContainerName(*old) == b.journal.OldName {
		b.data = dataSafe // it had not stepped aside
	}
	if err := b.engine.docker.Discard(ctx, b.journal.Worker); err != nil {
		return "", fmt.Errorf("end the worker that writes the volumes: %w", err)
	}
	made, err := b.engine.findMade(ctx, b.journal.Name, b.journal.Snapshot, b.journal.Old)
	if err != nil {
		return "", err
	}
	if over, err := b.isOver(ctx, old, made); over != "" || err != nil {
		return over, err
	}
	if made != nil {
		if err := b.engine.docker.Discard(ctx, made.ID); err != nil {
			return "", fmt.Errorf("remove the new container %s: %w", made.ID[:dockerop.ShortID], err)
		}
	}
	if old != nil && dockerop.ContainerName(*old) == b.journal.OldName {
		b.notStarted = b.engine.startOthers(ctx, b.journal.Others, b.p)
		return b.standUp(ctx, old.ID)
	}
	if b.when == later {
		if err := b.checkFree(ctx); err != nil {
			return "", err
		}
	}
	if err := b.putVolumesBack(ctx, old); err != nil {
		if errors.Is(err, errMixed) {
			return b.leaveStopped(ctx, old)
		}
		return "", err
	}
	b.data = dataSafe
	b.notStarted = b.engine.startOthers(ctx, b.journal.Others, b.p) // the container may need one of them to start
	if old == nil {
		return b.makeAgain(ctx)
	}
	return b.returnName(ctx, old)
}

// returnName gives the old container its name back, and what it was doing.
func (b *rollback) returnName(ctx context.Context, old *container.InspectResponse) (string, error) {
	err := b.engine.docker.ContainerRename(ctx, old.ID, b.journal.OldName)
	if cerrdefs.IsNotFound(err) { // somebody has removed it since
		return b.makeAgain(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("rename container %s back to %s: %w", b.journal.Aside, b.journal.OldName, err)
	}
	return b.standUp(ctx, old.ID)
}

// isOver returns a text if nothing can be rolled back: the old container is gone, and there is no
// safety snapshot to make it from again. Somebody must have removed it, because we remove it
// last of all.
func (b *rollback) isOver(ctx context.Context, old, made *container.InspectResponse) (string, error) {
	if old != nil || b.journal.Old == "" || made == nil {
		return "", nil
	}
	safety, err := b.findSafety(ctx)
	if err != nil || safety != nil {
		return "", err
	}
	b.notStarted = b.engine.startOthers(ctx, b.journal.Others, b.p)
	return fmt.Sprintf("container %s (%s) was removed by somebody meanwhile, and there is no snapshot of it: the new container %s (%s) stays",
		b.journal.OldName, b.journal.Old[:dockerop.ShortID], b.journal.Name, made.ID[:dockerop.ShortID]), nil
}

// findSafety finds the safety snapshot; nil: none was taken, or it is gone.
func (b *rollback) findSafety(ctx context.Context) (*catalog.Snapshot, error) {
	if b.journal.Safety == "" {
		return nil, nil
	}
	safety, err := b.engine.catalog.Resolve(ctx, string(b.journal.Safety))
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("safety snapshot: %w", err)
	}
	return &safety, nil
}

// finishReplace finishes a settled restore in place, done or rolled back: it starts the sharers,
// and removes the old container unless that is back under its name.
func (rp *Replacer) finishReplace(ctx context.Context, j pending.Journal, p plan.Progress) error {
	err := rp.startOthers(ctx, j.Others, p)
	if err != nil {
		err = &NotStartedError{Container: j.Name, Err: err}
	}
	return errors.Join(err, rp.removeReplaced(ctx, j, p))
}

// removeReplaced removes the old container, unless it is back under its name.
func (rp *Replacer) removeReplaced(ctx context.Context, j pending.Journal, p plan.Progress) error {
	old, err := rp.docker.InspectIfThere(ctx, j.Old)
	if err != nil || old == nil || j.OneShot || dockerop.ContainerName(*old) != j.Aside {
		return err
	}
	made, err := rp.findMade(ctx, j.Name, j.Snapshot, j.Old)
	if err != nil {
		return err
	}
	if made == nil { // never the last one
		p.Warn("remove", fmt.Sprintf("the replaced container %s is kept, because there is no container %s that took its place", j.Aside, j.Name))
		return nil
	}
	err = rp.docker.ContainerRemove(ctx, j.Old, container.RemoveOptions{Force: true})
	if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
		return fmt.Errorf("the replaced container %s could not be removed: %w", j.Aside, err)
	}
	return nil
}

// findOld finds the old container. If it was made with --rm and has ended, findOld waits until
// the engine has removed it.
func (b *rollback) findOld(ctx context.Context) (*container.InspectResponse, error) {
	old, err := b.engine.docker.InspectIfThere(ctx, b.journal.Old)
	if err != nil || old == nil || !b.journal.OneShot || old.State.Running {
		return old, err
	}
	return nil, b.engine.docker.AwaitGone(ctx, b.journal.Old)
}

// findMade finds the container of that name, if it was made from that snapshot and is not the
// old one.
func (rp *Replacer) findMade(ctx context.Context, name string, from labels.ID, old string) (*container.InspectResponse, error) {
	found, err := rp.docker.InspectIfThere(ctx, name)
	if err != nil || found == nil || found.ID == old || found.Config.Labels[labels.KeyRestoredFrom] != string(from) {
		return nil, err
	}
	return found, nil
}

// errMixed means that the volumes cannot be put back, because there is no safety snapshot.
var errMixed = errors.New("there is no safety snapshot")

// putVolumesBack restores the volumes from the safety snapshot. It first stops the containers
// that were stopped before, because a restart of the engine may have started them.
func (b *rollback) putVolumesBack(ctx context.Context, old *container.InspectResponse) error {
	if old != nil && old.State.Running {
		if err := b.engine.docker.Stop(ctx, old.ID, old.State.Paused, nil); err != nil {
			return fmt.Errorf("stop container %s: %w", b.journal.Aside, err)
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
	if b.journal.Safety == "" {
		return errMixed
	}
	safety, err := b.findSafety(ctx)
	switch {
	case err != nil:
		return err
	case safety == nil && old == nil:
		return nil // it ended by itself before it was captured: the volumes were not touched
	case safety == nil:
		return fmt.Errorf("safety snapshot: %w", &catalog.NotFoundError{Word: string(b.journal.Safety)})
	}
	targets := archivesOf(*safety, b.journal.Volumes)
	if len(targets) == 0 {
		return nil
	}
	volumes, err := b.engine.build.FillVolumes(ctx, safety.ID, targets, volumebackup.WorkerOptions{Name: b.journal.Worker, Task: volumebackup.Replace{}}, b.p) // what is lost was lost before
	return errors.Join(err, volumes.Close())
}

// archivesOf returns the archives of some volumes in a snapshot, one for each.
func archivesOf(s catalog.Snapshot, volumes []string) []volumebackup.Target {
	var targets []volumebackup.Target
	for _, m := range s.Mounts {
		known := slices.ContainsFunc(targets, func(t volumebackup.Target) bool { return t.Volume == m.Name })
		if m.Archive != nil && slices.Contains(volumes, m.Name) && !known {
			targets = append(targets, volumebackup.Target{Archive: m.Archive.Index, Root: m.Archive.Root, Volume: m.Name})
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
	storage, err := storage.Observe(ctx, b.engine.docker)
	if err != nil {
		return err
	}
	users, err := b.engine.build.UsersOf(ctx, storage, b.journal.Volumes)
	if err != nil {
		return err
	}
	var failed error
	for _, c := range users {
		if c.ID == b.journal.Old || slices.ContainsFunc(b.journal.Others, func(o pending.Other) bool { return o.ID == c.ID }) {
			continue
		}
		for _, name := range storage.UsesOf(c, b.journal.Volumes) {
			failed = errors.Join(failed, &InUseError{Volume: name, User: dockerop.SummaryName(c), Container: b.journal.Name})
		}
	}
	return failed
}
