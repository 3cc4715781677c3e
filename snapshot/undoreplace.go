package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// undoReplace takes a restore in place back, whatever of it was done: that is
// observed, so it serves a transaction that failed as well as one of which only
// the journal is left, and doing it twice does no harm. It works after Ctrl-C.
// It returns what was put back, for people.
func (e *Engine) undoReplace(ctx context.Context, j journal, p Progress) (string, error) {
	ctx = context.WithoutCancel(ctx)
	if err := e.discard(ctx, j.Worker); err != nil {
		return "", fmt.Errorf("end the worker that writes the volumes: %w", err)
	}
	old, err := e.findOld(ctx, j)
	if err != nil {
		return "", err
	}
	made, err := e.findMade(ctx, j.Name, j.Snapshot, j.Old)
	if err != nil {
		return "", err
	}
	if over, err := e.isOver(ctx, j, old, made, p); over != "" || err != nil {
		return over, err
	}
	if made != nil {
		if err := e.discard(ctx, made.ID); err != nil {
			return "", fmt.Errorf("remove the new container %s: %w", made.ID[:shortID], err)
		}
	}
	if old != nil && containerName(*old) == j.OldName { // it had not stepped aside: its volumes were not touched
		return e.standUp(ctx, old.ID, j, p)
	}
	if err := e.putVolumesBack(ctx, old, j, p); err != nil {
		if errors.Is(err, errMixed) {
			return e.leaveStopped(ctx, old, j)
		}
		return "", err
	}
	if old == nil {
		return e.makeAgain(ctx, j, p)
	}
	if err := e.docker.ContainerRename(ctx, old.ID, j.OldName); err != nil {
		return "", fmt.Errorf("rename container %s back to %s: %w", j.Aside, j.OldName, err)
	}
	return e.standUp(ctx, old.ID, j, p)
}

// isOver says what there is if nothing is left to take back, or nothing.
func (e *Engine) isOver(ctx context.Context, j journal, old, made *container.InspectResponse, p Progress) (string, error) {
	switch {
	case old != nil || j.Old == "":
		return "", nil
	case j.OneShot:
		again, err := e.findMade(ctx, j.OldName, j.Safety, j.Old)
		if err != nil || again == nil {
			return "", err
		}
		return madeAgain(j, again.ID), nil // by another attempt to take it back
	case made != nil: // the old one is removed last
		e.startOthers(ctx, j.Others, p)
		return fmt.Sprintf("container %s had been replaced already (%s): the restore is done", j.Name, made.ID[:shortID]), nil
	}
	return "", nil
}

// finishReplace does what is left when a restore in place is settled, one way or
// the other: the old container is removed, unless it is back under its name.
func (e *Engine) finishReplace(ctx context.Context, j journal, p Progress) error {
	e.startOthers(ctx, j.Others, p)
	old, err := e.inspectIfThere(ctx, j.Old)
	if err != nil || old == nil || j.OneShot || containerName(*old) != j.Aside {
		return err
	}
	made, err := e.findMade(ctx, j.Name, j.Snapshot, j.Old)
	if err != nil {
		return err
	}
	if made == nil { // never the last one
		p.warn("remove", fmt.Sprintf("the replaced container %s is kept, because there is no container %s that took its place", j.Aside, j.Name))
		return nil
	}
	err = e.docker.ContainerRemove(ctx, j.Old, container.RemoveOptions{Force: true})
	if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
		return fmt.Errorf("the replaced container %s could not be removed: %w", j.Aside, err)
	}
	return nil
}

// discard removes a container by force, and its volumes without a name. That it
// is gone, or about to go, is as good.
func (e *Engine) discard(ctx context.Context, word string) error {
	if word == "" {
		return nil
	}
	err := e.removeContainer(ctx, word)
	if cerrdefs.IsConflict(err) { // it is being removed: one that was made with --rm and has ended
		return e.awaitGone(ctx, word)
	}
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// findOld finds the container that was to be replaced. One that the engine is
// about to remove, because it was made with --rm and has ended, is gone.
func (e *Engine) findOld(ctx context.Context, j journal) (*container.InspectResponse, error) {
	old, err := e.inspectIfThere(ctx, j.Old)
	if err != nil || old == nil || !j.OneShot || old.State.Running {
		return old, err
	}
	return nil, e.awaitGone(ctx, j.Old)
}

// findMade finds the container of that name if it was made from that snapshot,
// and is not the old one.
func (e *Engine) findMade(ctx context.Context, name string, from labels.ID, old string) (*container.InspectResponse, error) {
	found, err := e.inspectIfThere(ctx, name)
	if err != nil || found == nil || found.ID == old || found.Config.Labels[labels.KeyRestoredFrom] != string(from) {
		return nil, err
	}
	return found, nil
}

// standUp gives the old container back what it was doing.
func (e *Engine) standUp(ctx context.Context, id string, j journal, p Progress) (string, error) {
	if err := e.removeVolumes(ctx, j.Made); err != nil {
		return "", err
	}
	if err := e.restorePolicy(ctx, id, j); err != nil {
		return "", err
	}
	old, _, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return "", fmt.Errorf("inspect container %s: %w", j.OldName, err)
	}
	state := "stopped"
	if j.Running {
		state = "running"
		if !old.State.Running {
			if err := e.startAgain(ctx, id); err != nil {
				return "", fmt.Errorf("start container %s: %w", j.OldName, err)
			}
		}
	}
	if j.Paused {
		state = "paused"
		if !old.State.Paused {
			if err := e.docker.ContainerPause(ctx, id); err != nil {
				return "", fmt.Errorf("pause container %s: %w", j.OldName, err)
			}
		}
	}
	e.startOthers(ctx, j.Others, p)
	return fmt.Sprintf("everything was put back: container %s (%s) is %s, with the data that it had", j.OldName, id[:shortID], state), nil
}

// startAgain starts a container that ran before. After a crash an engine may find
// in its way what is left of that, which it then clears away.
func (e *Engine) startAgain(ctx context.Context, id string) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		err := e.docker.ContainerStart(ctx, id, container.StartOptions{})
		if err != nil && strings.Contains(err.Error(), "already exists") {
			return false, nil
		}
		return err == nil, err
	})
}

func (e *Engine) restorePolicy(ctx context.Context, id string, j journal) error {
	if j.Policy == "" {
		return nil
	}
	return e.setRestartPolicy(ctx, id, container.RestartPolicy{
		Name: container.RestartPolicyMode(j.Policy), MaximumRetryCount: j.Retries,
	})
}

// removeVolumes removes what was made for a restore that was taken back.
func (e *Engine) removeVolumes(ctx context.Context, names []string) error {
	var failed error
	for _, name := range names {
		err := e.docker.VolumeRemove(context.WithoutCancel(ctx), name, false)
		if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) { // conflict: somebody uses it by now
			failed = errors.Join(failed, fmt.Errorf("remove volume %s: %w", name, err))
		}
	}
	return failed
}

// errMixed means that there is nothing to put volumes back from.
var errMixed = errors.New("there is no safety snapshot (--no-safety)")

// putVolumesBack makes the volumes what the safety snapshot says. Whoever could
// write to them is stopped: a restart of the engine may have started them.
func (e *Engine) putVolumesBack(ctx context.Context, old *container.InspectResponse, j journal, p Progress) error {
	if err := e.checkFree(ctx, j); err != nil {
		return err
	}
	if old != nil && old.State.Running {
		if err := e.stop(ctx, old.ID, old.State.Paused, nil); err != nil {
			return fmt.Errorf("stop container %s: %w", j.Aside, err)
		}
	}
	for _, o := range j.Others {
		if err := e.stop(ctx, o.ID, false, nil); err != nil {
			return fmt.Errorf("stop container %s: %w", o.Name, err)
		}
	}
	if len(j.Volumes) == 0 {
		return nil
	}
	if j.Safety == "" {
		return errMixed
	}
	safety, err := e.Resolve(ctx, string(j.Safety))
	if old == nil && cerrdefs.IsNotFound(err) {
		return nil // it ended by itself before it was captured, so before they were touched
	}
	if err != nil {
		return fmt.Errorf("safety snapshot: %w", err)
	}
	var targets []volumebackup.Target
	for _, m := range safety.Mounts {
		known := slices.ContainsFunc(targets, func(t volumebackup.Target) bool { return t.Volume == m.Name })
		if m.Archive != nil && slices.Contains(j.Volumes, m.Name) && !known {
			targets = append(targets, volumebackup.Target{Archive: m.Archive.Index, Root: m.Archive.Root, Volume: m.Name})
		}
	}
	if len(targets) == 0 {
		return nil
	}
	volumes, err := e.fillVolumes(ctx, safety.ID, targets, volumebackup.RestoreOptions{Worker: j.Worker}, p) // what is lost was lost before
	return errors.Join(err, volumes.close())
}

// checkFree finds whoever has begun to use a volume that is about to be put back. It
// is not stopped: nobody has asked for that.
func (e *Engine) checkFree(ctx context.Context, j journal) error {
	if len(j.Volumes) == 0 {
		return nil
	}
	users, err := e.usersOf(ctx, j.Volumes)
	if err != nil {
		return err
	}
	var failed error
	for _, c := range users {
		known := c.ID == j.Old || slices.ContainsFunc(j.Others, func(o other) bool { return o.ID == c.ID })
		if known || volumebackup.IsWorker(c) {
			continue
		}
		for _, name := range mountedOf(c, j.Volumes) {
			failed = errors.Join(failed, fmt.Errorf("volume %s is in use by container %s: stop it, then type docker snapshot recover %s", name, summaryName(c), j.Name))
		}
	}
	return failed
}

// leaveStopped gives the old container its name back, but does not start it: its
// volumes may hold a mixture of two states.
func (e *Engine) leaveStopped(ctx context.Context, old *container.InspectResponse, j journal) (string, error) {
	text := fmt.Sprintf("the volumes may hold a mixture of what was there and of %s, because there is no safety snapshot (--no-safety)", j.Snapshot)
	if old == nil {
		return text, nil
	}
	if err := e.docker.ContainerRename(ctx, old.ID, j.OldName); err != nil {
		return "", fmt.Errorf("rename container %s back to %s: %w", j.Aside, j.OldName, err)
	}
	if err := e.restorePolicy(ctx, old.ID, j); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; container %s (%s) is back, but stopped. Restore it: docker snapshot restore --replace %s", text, j.OldName, old.ID[:shortID], j.Snapshot), nil
}

// makeAgain makes the container that the engine removed when it stopped (--rm)
// anew, as the safety snapshot says. Its ID is another one.
func (e *Engine) makeAgain(ctx context.Context, j journal, p Progress) (string, error) {
	if err := e.removeVolumes(ctx, j.Made); err != nil {
		return "", err
	}
	if j.Old == "" {
		e.startOthers(ctx, j.Others, p)
		return "nothing is left of the attempt: there is no container " + j.Name + ", as before", nil
	}
	safety, err := e.Resolve(ctx, string(j.Safety))
	if cerrdefs.IsNotFound(err) {
		e.startOthers(ctx, j.Others, p)
		return fmt.Sprintf("container %s, which removes itself when it stops (--rm), ended before it was captured; its volumes are as they were", j.OldName), nil
	}
	if err != nil {
		return "", fmt.Errorf("safety snapshot: %w", err)
	}
	sp, _, err := decodeSpec(safety.Config)
	if err != nil {
		return "", fmt.Errorf("snapshot %s: %w", safety.ID, err)
	}
	sp.inPlace(safety, nil)
	sp.placeVolumes(safety, nil)
	sp.fitAPI(e.docker.ClientVersion()) // it was made on this very engine
	id, err := e.makeContainer(ctx, restore{id: safety.ID, spec: &sp, name: j.OldName, start: j.Running}, p)
	if err != nil {
		return "", err
	}
	e.startOthers(ctx, j.Others, p)
	return madeAgain(j, id), nil
}

func madeAgain(j journal, id string) string {
	return fmt.Sprintf("everything was put back: container %s, which removes itself when it stops (--rm), was made again as %s", j.OldName, id[:shortID])
}

// advice says what to do when even taking back has failed.
func (j journal) advice() string {
	text := "Nothing was deleted."
	if j.Old != "" {
		text += fmt.Sprintf(" The container is %s", j.Old[:shortID])
		if !j.OneShot {
			text += fmt.Sprintf(", now named %s or %s", j.Aside, j.OldName)
		}
		text += "."
	}
	if j.Safety != "" {
		text += fmt.Sprintf(" The data that it had is in snapshot %s.", j.Safety)
	}
	return text + " When the cause is removed, type: docker snapshot recover " + j.Name
}
