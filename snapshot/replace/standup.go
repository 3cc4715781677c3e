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
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// standUp gives the old container back what it was doing. What stands in the way
// of one thing does not keep it from the others.
func (rp *Replacer) standUp(ctx context.Context, id string, j pending.Journal, p plan.Progress) (string, error) {
	err := errors.Join(rp.docker.RemoveVolumes(ctx, j.Made), rp.restorePolicy(ctx, id, j), rp.resume(ctx, id, j))
	if err != nil {
		return "", err
	}
	rp.removeSafety(ctx, j, p)
	return fmt.Sprintf("everything was put back: container %s (%s) is %s, with the data that it had", j.OldName, id[:dockerop.ShortID], j.State()), nil
}

// resume starts a container if it was running, and pauses it if it was paused.
func (rp *Replacer) resume(ctx context.Context, id string, j pending.Journal) error {
	c, _, err := rp.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return fmt.Errorf("inspect container %s: %w", j.OldName, err)
	}
	if j.Running && !c.State.Running {
		if err := rp.docker.Reconnect(ctx, c, j.Endpoints); err != nil {
			return err
		}
		if err := rp.docker.StartAgain(ctx, id); err != nil {
			return fmt.Errorf("start container %s: %w", j.OldName, errors.Join(err, rp.docker.ReconnectAfter(ctx, id, j.Endpoints)))
		}
	}
	if j.Paused && !c.State.Paused {
		if err := rp.docker.MakePaused(ctx, id); err != nil {
			return fmt.Errorf("pause container %s: %w", j.OldName, err)
		}
	}
	return nil
}

func (rp *Replacer) restorePolicy(ctx context.Context, id string, j pending.Journal) error {
	if j.Policy == "" {
		return nil
	}
	return rp.docker.SetRestartPolicy(ctx, id, container.RestartPolicy{
		Name: container.RestartPolicyMode(j.Policy), MaximumRetryCount: j.Retries,
	})
}

// removeSafety removes a safety snapshot that says what is there again: nobody
// needs it, and it would be the latest. It may be there only if the very same
// container is back, or none was.
func (rp *Replacer) removeSafety(ctx context.Context, j pending.Journal, p plan.Progress) {
	if j.Safety == "" {
		return
	}
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	err := rp.removal.Remove(ctx, []string{string(j.Safety)}, removal.Options{}, p)[0].Err
	if err != nil && !cerrdefs.IsNotFound(err) {
		p.Warn("undo", fmt.Sprintf("the safety snapshot %s could not be removed: %v", j.Safety, err))
	}
}

// leaveStopped gives the old container its name back, but does not start it: its
// volumes may hold a mixture of two states.
func (rp *Replacer) leaveStopped(ctx context.Context, old *container.InspectResponse, j pending.Journal) (string, error) {
	text := fmt.Sprintf("the volumes may hold a mixture of what was there and of %s, because there is no safety snapshot (--no-safety)", j.Snapshot)
	if len(j.Others) > 0 {
		text += "; stopped because of that: " + strings.Join(otherNames(j.Others), ", ")
	}
	if old == nil {
		return text, nil
	}
	if err := rp.docker.ContainerRename(ctx, old.ID, j.OldName); err != nil {
		return "", fmt.Errorf("rename container %s back to %s: %w", j.Aside, j.OldName, err)
	}
	if err := rp.restorePolicy(ctx, old.ID, j); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; container %s (%s) is back, but stopped. Restore it: docker snapshot restore --replace %s", text, j.OldName, old.ID[:dockerop.ShortID], j.Snapshot), nil
}

func otherNames(others []pending.Other) []string {
	names := make([]string, len(others))
	for i, o := range others {
		names[i] = o.Name
	}
	return names
}

// makeAgain makes the container anew that is gone, as the safety snapshot says:
// the engine removed it when it stopped (--rm), or somebody did. Its ID is
// another one, and its image is the safety snapshot's, which therefore stays.
func (rp *Replacer) makeAgain(ctx context.Context, j pending.Journal, p plan.Progress) (string, error) {
	if err := rp.docker.RemoveVolumes(ctx, j.Made); err != nil {
		return "", err
	}
	switch {
	case j.Old == "":
		rp.removeSafety(ctx, j, p)
		return "nothing is left of the attempt: there is no container " + j.Name + ", as before", nil
	case j.Dead:
		return fmt.Sprintf("container %s, which was dead, is gone; its volumes are as they were", j.OldName), nil
	}
	safety, err := rp.findSafety(ctx, j)
	if err != nil {
		return "", err
	}
	if safety == nil {
		return fmt.Sprintf("container %s %s before it was captured; its volumes are as they were", j.OldName, j.WhyGone("ended", "was removed by somebody")), nil
	}
	again, err := rp.findMade(ctx, j.OldName, j.Safety, j.Old) // by another attempt to take it back
	if err != nil {
		return "", err
	}
	id := ""
	if again != nil {
		id = again.ID
	} else if id, err = rp.makeOf(ctx, *safety, j, p); err != nil {
		return "", err
	}
	if err := rp.resume(ctx, id, j); err != nil {
		return "", err
	}
	return fmt.Sprintf("everything was put back: container %s, which %s, was made again as %s and is %s", j.OldName,
		j.WhyGone("removes itself when it stops (--rm)", "somebody had removed"), id[:dockerop.ShortID], j.State()), nil
}

// makeOf makes the container of a safety snapshot again.
func (rp *Replacer) makeOf(ctx context.Context, safety catalog.Snapshot, j pending.Journal, p plan.Progress) (string, error) {
	sp, _, err := runconfig.Decode(safety.Config)
	if err != nil {
		return "", fmt.Errorf("snapshot %s: %w", safety.ID, err)
	}
	inherited, err := rp.build.ImageLabels(ctx, safety)
	if err != nil {
		return "", err
	}
	sp.InPlace(safety, nil)
	sp.BlankInherited(inherited)
	sp.PlaceVolumes(safety, nil)
	sp.FitAPI(rp.docker.ClientVersion()) // it was made on this very engine
	return rp.build.Make(ctx, build.Container{Spec: &sp, Name: j.OldName}, p)
}
