package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// An anonymous volume belongs to one container: docker rm -v and --rm remove it with
// that. Only a volume that the engine makes and names while it creates a container is one.
// So a restore creates the container first, with mounts without a source, asks which
// volumes the engine has made, fills them, and starts the container afterwards. A
// volume that exists can only be mounted by its name, and then the engine keeps it.

// named are the volumes that are made before the container.
func (r restore) named() []runconfig.NewVolume {
	return slices.DeleteFunc(slices.Clone(r.volumes), runconfig.NewVolume.IsAnonymous)
}

// anonymous are the volumes that the engine makes together with the container.
func (r restore) anonymous() []runconfig.NewVolume {
	return slices.DeleteFunc(slices.Clone(r.volumes), func(v runconfig.NewVolume) bool { return !v.IsAnonymous() })
}

// anonymousNames are the names that the engine gave to the volumes that it made together
// with the container id, in the order of volumes.
func (e *Engine) anonymousNames(ctx context.Context, id string, volumes []runconfig.NewVolume) ([]string, error) {
	found, _, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return nil, fmt.Errorf("inspect container %s: %w", id[:dockerop.ShortID], err)
	}
	names := make([]string, len(volumes))
	for i, v := range volumes {
		for _, point := range found.Mounts {
			if point.Type == mount.TypeVolume && point.Destination == v.Destination {
				names[i] = point.Name
			}
		}
		if names[i] == "" {
			return nil, fmt.Errorf("the engine made no volume for %s of container %s", v.Destination, id[:dockerop.ShortID])
		}
	}
	return names, nil
}

// fillAnonymous fills the volumes that the engine has made together with a container. o says
// more of the worker. What it returns, also with an error, must be closed; it is nil if
// there is nothing to fill.
func (e *Engine) fillAnonymous(ctx context.Context, id labels.ID, volumes []runconfig.NewVolume, names []string, o volumebackup.RestoreOptions, p plan.Progress) (*filled, error) {
	var targets []volumebackup.Target
	o.Fill = &volumebackup.Fill{}
	for i, v := range volumes {
		if v.Archive != nil {
			targets = append(targets, targetOf(v, names[i], o.Fill))
		}
	}
	if len(targets) == 0 {
		return nil, nil
	}
	if e.volumes == nil {
		return nil, errors.New("nothing here can restore volumes")
	}
	return e.fillVolumes(ctx, id, targets, o, p)
}
