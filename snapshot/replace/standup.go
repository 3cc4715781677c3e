package replace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// standUp gives the old containers their names, and then brings them back to the state that they had.
// It tries every step, even if one fails. No container is started before all have tried to get their names:
// whoever finds one under its name knows that the volumes are back.
func (b *rollback) standUp(ctx context.Context, members []*remains) (string, error) {
	failed := b.engine.docker.RemoveVolumes(ctx, b.made)
	for _, r := range members {
		failed = errors.Join(failed, b.returnName(ctx, r))
	}
	for _, r := range members {
		if r.id != "" {
			failed = errors.Join(failed, b.restoreState(ctx, r))
		}
	}
	if failed != nil {
		return "", failed
	}
	if !b.journal.Keeps { // else they have gone before
		if err := b.removeSafeties(ctx, members); err != nil {
			b.p.Warn("undo", err.Error())
		}
	}
	return textOf(members, func(r *remains) string { return r.nowIs(b.stateNow(ctx, r)) }), nil
}

// stateNow returns the state of a container that was put back. It may have ended since it was started.
func (b *rollback) stateNow(ctx context.Context, r *remains) string {
	if r.id == "" {
		return ""
	}
	c, err := b.engine.docker.InspectIfThere(ctx, r.id)
	switch {
	case err != nil:
		return r.State()
	case c == nil:
		return "gone again"
	}
	state := stateOf(*c)
	if r.Running && !c.State.Running && !c.State.Restarting {
		state += fmt.Sprintf(" (started again, it ended with exit code %d)", c.State.ExitCode)
	}
	return state
}

// returnName gives an old container its name back. One that is gone is made again.
func (b *rollback) returnName(ctx context.Context, r *remains) error {
	switch {
	case r.stays, r.id != "":
		return nil
	case r.old == nil:
		return b.makeAgain(ctx, r)
	case r.isInPlace():
		r.id = r.old.ID
		return nil
	}
	err := b.engine.docker.ContainerRename(ctx, r.old.ID, r.OldName)
	if cerrdefs.IsNotFound(err) { // somebody has removed it since
		r.old = nil
		return b.makeAgain(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("rename container %s back to %s: %w", r.Aside, r.OldName, err)
	}
	r.id = r.old.ID
	return nil
}

// nowIs describes a member once everything was put back, in the state that the engine reports.
func (r *remains) nowIs(state string) string {
	switch {
	case r.stays:
		return r.whyItStays()
	case r.Old == "":
		return "nothing is left of the attempt: there is no container " + r.Name + ", as before"
	case r.id == "":
		return fmt.Sprintf("container %s %s before it was captured; its volumes are as they were", r.OldName, r.WhyGone("ended", "was removed by somebody"))
	case r.old == nil:
		return fmt.Sprintf("everything was put back: container %s, which %s, was made again as %s and is %s", r.OldName,
			r.WhyGone("removes itself when it stops (--rm)", "somebody had removed"), r.id[:dockerop.ShortID], state)
	}
	return fmt.Sprintf("everything was put back: container %s (%s) is %s, with the data that it had", r.OldName, r.id[:dockerop.ShortID], state)
}

// restoreState brings a container back to the state that it had.
func (b *rollback) restoreState(ctx context.Context, r *remains) error {
	if r.old == nil { // made again, with its policy
		return b.resume(ctx, r)
	}
	return errors.Join(b.engine.returnPolicy(ctx, r.Member), b.resume(ctx, r))
}

// resume starts a container if it was running, and pauses it if it was paused.
func (b *rollback) resume(ctx context.Context, r *remains) error {
	c, _, err := b.engine.docker.ContainerInspectWithRaw(ctx, r.id, false)
	if err != nil {
		return fmt.Errorf("inspect container %s: %w", r.OldName, err)
	}
	if r.Running && !c.State.Running {
		if err := b.engine.docker.Reconnect(ctx, c, r.Endpoints); err != nil {
			return err
		}
		if err := b.engine.docker.StartAgain(ctx, r.id); err != nil {
			return fmt.Errorf("start container %s: %w", r.OldName, errors.Join(err, b.engine.docker.ReconnectAfter(ctx, r.id, r.Endpoints)))
		}
	}
	if b.journal.Live && !r.Paused && c.State.Paused {
		_, err := b.engine.docker.Thaw(ctx, []string{r.id})
		return err
	}
	if r.Paused && !c.State.Paused {
		if err := b.engine.docker.MakePaused(ctx, r.id); err != nil {
			return fmt.Errorf("pause container %s: %w", r.OldName, err)
		}
	}
	return nil
}

// removeSafeties removes the safety snapshots of a restore that was rolled back: they would be the
// latest, and nobody needs them. One stays if its container was made again from it.
func (b *rollback) removeSafeties(ctx context.Context, members []*remains) error {
	var ids []string
	for _, r := range members {
		if r.Safety != "" && (r.old != nil || r.Old == "") {
			ids = append(ids, string(r.Safety))
		}
		if b.journal.Copy != nil && !r.stays {
			ids = append(ids, string(r.Snapshot)) // of the copy, which is there
		}
	}
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	var failed error
	for i, removed := range b.engine.removal.Remove(ctx, ids, removal.Options{}, b.p) {
		if removed.Err != nil && !cerrdefs.IsNotFound(removed.Err) {
			failed = errors.Join(failed, fmt.Errorf("the safety snapshot %s could not be removed: %w", ids[i], removed.Err))
		}
	}
	return failed
}

// leaveStopped gives the old containers their names back, but does not start them: their
// volumes may hold a mixture of two states.
func (b *rollback) leaveStopped(ctx context.Context, members []*remains) (string, error) {
	text := []string{fmt.Sprintf("the volumes may hold a mixture of what was there and of %s, because there is no safety snapshot", strings.Join(b.journal.Snapshots(), " and "))}
	if len(b.journal.Others) > 0 {
		text = append(text, "stopped because of that: "+strings.Join(otherNames(b.journal.Others), ", "))
	}
	for _, r := range members {
		if r.old == nil {
			continue
		}
		if err := b.returnName(ctx, r); err != nil {
			return "", err
		}
		if r.old == nil { // somebody has removed it since
			continue
		}
		if err := b.engine.returnPolicy(ctx, r.Member); err != nil {
			return "", err
		}
		text = append(text, fmt.Sprintf("container %s (%s) is back, but stopped: restore %s in place once more", r.OldName, r.old.ID[:dockerop.ShortID], r.Snapshot))
	}
	return strings.Join(text, "; "), nil
}

func otherNames(others []pending.Other) []string {
	names := make([]string, len(others))
	for i, o := range others {
		names[i] = o.Name
	}
	return names
}

// makeAgain makes an old container from its safety snapshot: the engine removed it when it
// stopped (--rm), or a user did. It has a new ID, and the safety snapshot stays as its image.
func (b *rollback) makeAgain(ctx context.Context, r *remains) error {
	if r.Old == "" {
		return nil
	}
	safety, err := b.engine.findSafety(ctx, r.Member)
	if err != nil || safety == nil {
		return err
	}
	again, err := b.engine.findMade(ctx, b.journal, r.OldName, r.Safety) // by another attempt to take it back
	if err != nil {
		return err
	}
	if again != nil {
		r.id = again.ID
		return nil
	}
	r.id, err = b.makeOf(ctx, *safety, r.OldName)
	return err
}

// makeOf makes the container of a safety snapshot again.
func (b *rollback) makeOf(ctx context.Context, safety catalog.Snapshot, name string) (string, error) {
	sp, _, err := runconfig.Decode(safety.Config)
	if err != nil {
		return "", fmt.Errorf("snapshot %s: %w", safety.ID, err)
	}
	inherited, err := b.engine.build.ImageLabels(ctx, safety)
	if err != nil {
		return "", err
	}
	var failed error
	sp.FollowNames(func(word string) string {
		c, err := b.engine.docker.InspectIfThere(ctx, word)
		if failed = errors.Join(failed, err); c == nil {
			return ""
		}
		return c.ID
	})
	if failed != nil {
		return "", failed
	}
	sp.InPlace(safety, nil)
	sp.Config.Labels[labels.KeyRestoredAt] = labels.FormatTime(b.engine.now())
	sp.BlankInherited(inherited)
	sp.PlaceVolumes(safety, nil)
	sp.FitAPI(b.engine.docker.ClientVersion()) // it was made on this very engine
	return b.engine.build.Make(ctx, build.Container{Spec: &sp, Name: name}, b.p)
}
