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

// UndoCrashed takes a restore in place back that somebody else has begun, and of
// which it is not known what its last call was.
func (rp *Replacer) UndoCrashed(ctx context.Context, j pending.Journal, when timing, p plan.Progress) (string, error) {
	if err := rp.AwaitStop(context.WithoutCancel(ctx), j, p); err != nil {
		return "", err
	}
	return rp.UndoReplace(ctx, j, when, p)
}

// UndoReplace takes a restore in place back, whatever of it was done: that is
// observed, so it serves a transaction that failed as well as one of which only
// the journal is left, and doing it twice does no harm. It works after Ctrl-C.
// It returns what was put back, for people. What it could not put back, it tells
// in an [UndoError]; if that is only that another container does not start again, in
// a [NotStartedError].
func (rp *Replacer) UndoReplace(ctx context.Context, j pending.Journal, when timing, p plan.Progress) (string, error) {
	ctx = context.WithoutCancel(ctx)
	b := rollBack{when: when, data: dataSafe}
	if len(j.Volumes) > 0 {
		b.data = dataMixed
	}
	text, err := rp.putBack(ctx, j, &b, p)
	switch {
	case err == nil && b.notStarted == nil:
		return text, nil
	case err == nil:
		return text, &NotStartedError{Container: j.Name, Err: b.notStarted}
	}
	if b.data == dataSafe { // else they would work with a mixture
		err = errors.Join(err, rp.StartOthers(ctx, j.Others, p))
	}
	return "", &UndoError{Container: j.Name, State: rp.account(ctx, j, b.data), Err: err}
}

// timing says when a restore in place is rolled back.
type timing int

const (
	AtOnce timing = iota // by the transaction that failed
	later                // by another process, after whatever has happened meanwhile
)

// rollBack is how far putting everything back has come.
type rollBack struct {
	when       timing
	data       dataState // what the volumes hold
	notStarted error     // why others could not be started again
}

// putBack does the work of undoReplace.
func (rp *Replacer) putBack(ctx context.Context, j pending.Journal, b *rollBack, p plan.Progress) (string, error) {
	old, err := rp.findOld(ctx, j)
	if err != nil {
		return "", err
	}
	if old != nil && dockerop.ContainerName(*old) == j.OldName {
		b.data = dataSafe // it had not stepped aside
	}
	if err := rp.docker.Discard(ctx, j.Worker); err != nil {
		return "", fmt.Errorf("end the worker that writes the volumes: %w", err)
	}
	made, err := rp.findMade(ctx, j.Name, j.Snapshot, j.Old)
	if err != nil {
		return "", err
	}
	if over, err := rp.isOver(ctx, j, old, made, b, p); over != "" || err != nil {
		return over, err
	}
	if made != nil {
		if err := rp.docker.Discard(ctx, made.ID); err != nil {
			return "", fmt.Errorf("remove the new container %s: %w", made.ID[:dockerop.ShortID], err)
		}
	}
	if old != nil && dockerop.ContainerName(*old) == j.OldName {
		b.notStarted = rp.StartOthers(ctx, j.Others, p)
		return rp.standUp(ctx, old.ID, j, p)
	}
	if b.when == later {
		if err := rp.checkFree(ctx, j); err != nil {
			return "", err
		}
	}
	if err := rp.putVolumesBack(ctx, old, j, p); err != nil {
		if errors.Is(err, errMixed) {
			return rp.leaveStopped(ctx, old, j)
		}
		return "", err
	}
	b.data = dataSafe
	b.notStarted = rp.StartOthers(ctx, j.Others, p) // the container may need one of them to start
	if old == nil {
		return rp.makeAgain(ctx, j, p)
	}
	err = rp.docker.ContainerRename(ctx, old.ID, j.OldName)
	if cerrdefs.IsNotFound(err) { // somebody has removed it since
		return rp.makeAgain(ctx, j, p)
	}
	if err != nil {
		return "", fmt.Errorf("rename container %s back to %s: %w", j.Aside, j.OldName, err)
	}
	return rp.standUp(ctx, old.ID, j, p)
}

// isOver says what there is if nothing is left to take back, or nothing: the old
// container is gone, and was made again by another attempt to take it back; or
// there is nothing to make it of. Somebody must have removed it, for we remove it
// last of all.
func (rp *Replacer) isOver(ctx context.Context, j pending.Journal, old, made *container.InspectResponse, b *rollBack, p plan.Progress) (string, error) {
	if old != nil || j.Old == "" || made == nil {
		return "", nil
	}
	safety, err := rp.findSafety(ctx, j)
	if err != nil || safety != nil {
		return "", err
	}
	b.notStarted = rp.StartOthers(ctx, j.Others, p)
	return fmt.Sprintf("container %s (%s) was removed by somebody meanwhile, and there is no snapshot of it: the new container %s (%s) stays",
		j.OldName, j.Old[:dockerop.ShortID], j.Name, made.ID[:dockerop.ShortID]), nil
}

// findSafety finds the safety snapshot; nil: none was taken, or it is gone.
func (rp *Replacer) findSafety(ctx context.Context, j pending.Journal) (*catalog.Snapshot, error) {
	if j.Safety == "" {
		return nil, nil
	}
	safety, err := rp.catalog.Resolve(ctx, string(j.Safety))
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("safety snapshot: %w", err)
	}
	return &safety, nil
}

// finishReplace does what is left when a restore in place is settled, one way or
// the other: the others are started, and the old container is removed, unless it is
// back under its name.
func (rp *Replacer) finishReplace(ctx context.Context, j pending.Journal, p plan.Progress) error {
	err := rp.StartOthers(ctx, j.Others, p)
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

// findOld finds the container that was to be replaced. One that the engine is
// about to remove, because it was made with --rm and has ended, is gone.
func (rp *Replacer) findOld(ctx context.Context, j pending.Journal) (*container.InspectResponse, error) {
	old, err := rp.docker.InspectIfThere(ctx, j.Old)
	if err != nil || old == nil || !j.OneShot || old.State.Running {
		return old, err
	}
	return nil, rp.docker.AwaitGone(ctx, j.Old)
}

// findMade finds the container of that name if it was made from that snapshot,
// and is not the old one.
func (rp *Replacer) findMade(ctx context.Context, name string, from labels.ID, old string) (*container.InspectResponse, error) {
	found, err := rp.docker.InspectIfThere(ctx, name)
	if err != nil || found == nil || found.ID == old || found.Config.Labels[labels.KeyRestoredFrom] != string(from) {
		return nil, err
	}
	return found, nil
}

// errMixed means that there is nothing to put volumes back from.
var errMixed = errors.New("there is no safety snapshot (--no-safety)")

// putVolumesBack makes the volumes what the safety snapshot says. Whoever could
// write to them is stopped: a restart of the engine may have started them. A
// container that came in while they were being written has a mixture, so it gets
// what was there; what one has written long after that is not overwritten.
func (rp *Replacer) putVolumesBack(ctx context.Context, old *container.InspectResponse, j pending.Journal, p plan.Progress) error {
	if old != nil && old.State.Running {
		if err := rp.docker.Stop(ctx, old.ID, old.State.Paused, nil); err != nil {
			return fmt.Errorf("stop container %s: %w", j.Aside, err)
		}
	}
	for _, o := range j.Others {
		if err := rp.docker.Stop(ctx, o.ID, false, nil); err != nil {
			return fmt.Errorf("stop container %s: %w", o.Name, err)
		}
	}
	if len(j.Volumes) == 0 {
		return nil
	}
	if j.Safety == "" {
		return errMixed
	}
	safety, err := rp.findSafety(ctx, j)
	switch {
	case err != nil:
		return err
	case safety == nil && (old == nil || j.Dead):
		return nil // it was not captured yet: it ended by itself, or steps aside first. They were not touched
	case safety == nil:
		return fmt.Errorf("safety snapshot: %w", &catalog.NotFoundError{Word: string(j.Safety)})
	}
	targets := archivesOf(*safety, j.Volumes)
	if len(targets) == 0 {
		return nil
	}
	volumes, err := rp.build.FillVolumes(ctx, safety.ID, targets, volumebackup.RestoreOptions{Worker: j.Worker}, p) // what is lost was lost before
	return errors.Join(err, volumes.Close())
}

// archivesOf are the archives that a snapshot holds of some volumes, one for each.
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

// abandon ends the worker that holds the lock, but leaves its container: the
// journal. It waits until that can be seen, or who comes next would take the
// operation to be under way.
func (rp *Replacer) abandon(ctx context.Context, lock archives.Worker) {
	_ = lock.Abandon()
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	_ = dockerop.Poll(ctx, func() (bool, error) { // that it goes on for a while does no harm
		c, err := rp.docker.InspectIfThere(ctx, lock.ID())
		return c == nil || !c.State.Running, err
	})
}

// checkFree finds whoever has begun to use a volume that is about to be put back
// after an interruption. It is not stopped: nobody has asked for that.
func (rp *Replacer) checkFree(ctx context.Context, j pending.Journal) error {
	if len(j.Volumes) == 0 {
		return nil
	}
	storage, err := storage.Observe(ctx, rp.docker)
	if err != nil {
		return err
	}
	users, err := rp.build.UsersOf(ctx, storage, j.Volumes)
	if err != nil {
		return err
	}
	var failed error
	for _, c := range users {
		if c.ID == j.Old || slices.ContainsFunc(j.Others, func(o pending.Other) bool { return o.ID == c.ID }) {
			continue
		}
		for _, name := range storage.UsesOf(c, j.Volumes) {
			failed = errors.Join(failed, fmt.Errorf("volume %s is in use by container %s: stop it, then type docker snapshot recover %s", name, dockerop.SummaryName(c), j.Name))
		}
	}
	return failed
}
