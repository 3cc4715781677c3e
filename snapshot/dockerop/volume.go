package dockerop

import (
	"context"
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// RemoveVolumes removes the volumes that a restore made and now rolls back. It keeps those that
// somebody uses by now, and goes on after an error.
func (e *Engine) RemoveVolumes(ctx context.Context, names []string) error {
	var failed error
	for _, name := range names {
		err := e.VolumeRemove(context.WithoutCancel(ctx), name, false)
		if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) { // a conflict means that somebody uses it
			failed = errors.Join(failed, fmt.Errorf("remove volume %s: %w", name, err))
		}
	}
	return failed
}

// IsUnlabelled tells whether a volume has no labels. If its name is one that only we give, the engine was killed while it made it:
// the engine makes the directory first, and writes down the labels then. So nobody has used it.
func IsUnlabelled(v volume.Volume) bool { return len(v.Labels) == 0 }

// MountKey returns the key of what is mounted, as [labels.Mount.Key] has it.
func MountKey(m container.MountPoint) string {
	return labels.Mount{Type: string(m.Type), Name: m.Name, Source: m.Source}.Key()
}

// MountedKeys returns the keys of what a container mounts and what could be archived: its
// volumes and its bind mounts.
func MountedKeys(c container.InspectResponse) []string {
	var keys []string
	for _, m := range c.Mounts {
		if key := MountKey(m); key != "" {
			keys = append(keys, key)
		}
	}
	return Distinct(keys)
}

// MountedVolumes returns the names of the volumes that a container mounts, sorted.
func MountedVolumes(c container.InspectResponse) []string {
	var names []string
	for _, m := range c.Mounts {
		if m.Type == mount.TypeVolume && m.Name != "" {
			names = append(names, m.Name)
		}
	}
	return Distinct(names)
}
