package replace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// standUp brings the old container back to the state that it had. It tries every step, even if
// one fails.
func (b *rollback) standUp(ctx context.Context, id string) (string, error) {
	err := errors.Join(b.engine.docker.RemoveVolumes(ctx, b.made), b.restorePolicy(ctx, id), b.resume(ctx, id))
	if err != nil {
		return "", err
	}
	b.removeSafety(ctx)
	return fmt.Sprintf("everything was put back: container %s (%s) is %s, with the data that it had", b.journal.OldName, id[:dockerop.ShortID], b.journal.State()), nil
}

// resume starts a container if it was running, and pauses it if it was paused.
func (b *rollback) resume(ctx context.Context, id string) error {
	c, _, err := b.engine.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return fmt.Errorf("inspect container %s: %w", b.journal.OldName, err)
	}
	if b.journal.Running && !c.State.Running {
		if err := b.engine.docker.Reconnect(ctx, c, b.journal.Endpoints); err != nil {
			return err
		}
		if err := b.engine.docker.StartAgain(ctx, id); err != nil {
			return fmt.Errorf("start container %s: %w", b.journal.OldName, errors.Join(err, b.engine.docker.ReconnectAfter(ctx, id, b.journal.Endpoints)))
		}
	}
	if b.journal.Paused && !c.State.Paused {
		if err := b.engine.docker.MakePaused(ctx, id); err != nil {
			return fmt.Errorf("pause container %s: %w", b.journal.OldName, err)
		}
	}
	return nil
}

func (b *rollback) restorePolicy(ctx context.Context, id string) error {
	if b.journal.Policy == "" {
		return nil
	}
	return b.engine.docker.SetRestartPolicy(ctx, id, container.RestartPolicy{
		Name: container.RestartPolicyMode(b.journal.Policy), MaximumRetryCount: b.journal.Retries,
	})
}

// removeSafety removes the safety snapshot of a restore that was rolled back: it would be the
// latest, and nobody needs it. It must stay if the container was made again from it.
func (b *rollback) removeSafety(ctx context.Context) {
	if b.journal.Safety == "" {
		return
	}
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	err := b.engine.removal.Remove(ctx, []string{string(b.journal.Safety)}, removal.Options{}, b.p)[0].Err
	if err != nil && !cerrdefs.IsNotFound(err) {
		b.p.Warn("undo", fmt.Sprintf("the safety snapshot %s could not be removed: %v", b.journal.Safety, err))
	}
}

// leaveStopped gives the old container its name back, but does not start it: its
// volumes may hold a mixture of two states.
func (b *rollback) leaveStopped(ctx context.Context, old *container.InspectResponse) (string, error) {
	text := fmt.Sprintf("the volumes may hold a mixture of what was there and of %s, because there is no safety snapshot", b.journal.Snapshot)
	if len(b.journal.Others) > 0 {
		text += "; stopped because of that: " + strings.Join(otherNames(b.journal.Others), ", ")
	}
	if old == nil {
		return text, nil
	}
	if err := b.engine.docker.ContainerRename(ctx, old.ID, b.journal.OldName); err != nil {
		return "", fmt.Errorf("rename container %s back to %s: %w", b.journal.Aside, b.journal.OldName, err)
	}
	if err := b.restorePolicy(ctx, old.ID); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; container %s (%s) is back, but stopped: restore %s in place once more", text, b.journal.OldName, old.ID[:dockerop.ShortID], b.journal.Snapshot), nil
}

func otherNames(others []pending.Other) []string {
	names := make([]string, len(others))
	for i, o := range others {
		names[i] = o.Name
	}
	return names
}

// makeAgain makes the old container from the safety snapshot: the engine removed it when it
// stopped (--rm), or a user did. It has a new ID, and the safety snapshot stays as its image.
func (b *rollback) makeAgain(ctx context.Context) (string, error) {
	if err := b.engine.docker.RemoveVolumes(ctx, b.made); err != nil {
		return "", err
	}
	if b.journal.Old == "" {
		b.removeSafety(ctx)
		return "nothing is left of the attempt: there is no container " + b.journal.Name + ", as before", nil
	}
	safety, err := b.findSafety(ctx)
	if err != nil {
		return "", err
	}
	if safety == nil {
		return fmt.Sprintf("container %s %s before it was captured; its volumes are as they were", b.journal.OldName, b.journal.WhyGone("ended", "was removed by somebody")), nil
	}
	again, err := b.engine.findMade(ctx, b.journal.OldName, b.journal.Safety, b.journal.Old) // by another attempt to take it back
	if err != nil {
		return "", err
	}
	id := ""
	if again != nil {
		id = again.ID
	} else if id, err = b.makeOf(ctx, *safety); err != nil {
		return "", err
	}
	if err := b.resume(ctx, id); err != nil {
		return "", err
	}
	return fmt.Sprintf("everything was put back: container %s, which %s, was made again as %s and is %s", b.journal.OldName,
		b.journal.WhyGone("removes itself when it stops (--rm)", "somebody had removed"), id[:dockerop.ShortID], b.journal.State()), nil
}

// makeOf makes the container of a safety snapshot again.
func (b *rollback) makeOf(ctx context.Context, safety catalog.Snapshot) (string, error) {
	sp, _, err := runconfig.Decode(safety.Config)
	if err != nil {
		return "", fmt.Errorf("snapshot %s: %w", safety.ID, err)
	}
	inherited, err := b.engine.build.ImageLabels(ctx, safety)
	if err != nil {
		return "", err
	}
	sp.InPlace(safety, nil)
	sp.BlankInherited(inherited)
	sp.PlaceVolumes(safety, nil)
	sp.FitAPI(b.engine.docker.ClientVersion()) // it was made on this very engine
	return b.engine.build.Make(ctx, build.Container{Spec: &sp, Name: b.journal.OldName}, b.p)
}
