package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// An anonymous volume belongs to one container: docker rm -v and --rm remove it with
// that. Only a volume that the engine makes and names while it creates a container is one.
// So a restore creates the container first, with mounts without a source, asks which
// volumes the engine has made, fills them, and starts the container afterwards. A
// volume that exists can only be mounted by its name, and then the engine keeps it.

// becomesAnonymous tells whether the engine can make a volume like m together with the
// container. It refuses a read-only one, two mounts cannot share one, and it would
// make one of another driver where we want a local one.
func (sp *spec) becomesAnonymous(m labels.Mount, mounts []labels.Mount) bool {
	used := 0
	for _, other := range mounts {
		if other.Type == string(mount.TypeVolume) && other.Name == m.Name {
			used++
		}
	}
	driver := sp.host.VolumeDriver
	return m.Anonymous && m.RW && m.Subpath == "" && len(m.Options) == 0 && !pointsElsewhere(m) && used == 1 &&
		(driver == "" || driver == "local") && len(sp.host.VolumesFrom) == 0
}

// mountAnonymous makes the configuration mount a new anonymous volume where m was.
func (sp *spec) mountAnonymous(m labels.Mount) {
	sp.host.Binds = slices.DeleteFunc(sp.host.Binds, func(text string) bool {
		b, ok := parseBind(text)
		return ok && !b.isPath() && b.destination == m.Destination
	})
	for i := range sp.host.Mounts {
		point := &sp.host.Mounts[i]
		if point.Type == mount.TypeVolume && point.Target == m.Destination {
			point.Source = ""
			point.VolumeOptions = anonymousOptions(point.VolumeOptions)
			return
		}
	}
	isDestination := func(text string) bool { return path.Clean(text) == m.Destination }
	for destination := range sp.config.Volumes {
		if isDestination(destination) {
			return
		}
	}
	if !slices.ContainsFunc(sp.host.Binds, isDestination) { // that is how the API can ask for one, too
		sp.host.Mounts = append(sp.host.Mounts, mount.Mount{Type: mount.TypeVolume, Target: m.Destination})
	}
}

// anonymousOptions are the options of a captured mount that hold for a new, local
// volume.
func anonymousOptions(captured *mount.VolumeOptions) *mount.VolumeOptions {
	if captured == nil {
		return nil
	}
	kept := &mount.VolumeOptions{NoCopy: captured.NoCopy}
	for key, value := range withoutOurs(captured.Labels) {
		if !strings.HasPrefix(key, catalog.ComposePrefix) && key != labelAnonymous {
			if kept.Labels == nil {
				kept.Labels = map[string]string{}
			}
			kept.Labels[key] = value
		}
	}
	return kept
}

// named are the volumes that are made before the container.
func (r restore) named() []newVolume {
	return slices.DeleteFunc(slices.Clone(r.volumes), newVolume.isAnonymous)
}

// anonymous are the volumes that the engine makes together with the container.
func (r restore) anonymous() []newVolume {
	return slices.DeleteFunc(slices.Clone(r.volumes), func(v newVolume) bool { return !v.isAnonymous() })
}

// anonymousNames are the names that the engine gave to the volumes that it made together
// with the container id, in the order of volumes.
func (e *Engine) anonymousNames(ctx context.Context, id string, volumes []newVolume) ([]string, error) {
	found, _, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return nil, fmt.Errorf("inspect container %s: %w", id[:dockerop.ShortID], err)
	}
	names := make([]string, len(volumes))
	for i, v := range volumes {
		for _, point := range found.Mounts {
			if point.Type == mount.TypeVolume && point.Destination == v.destination {
				names[i] = point.Name
			}
		}
		if names[i] == "" {
			return nil, fmt.Errorf("the engine made no volume for %s of container %s", v.destination, id[:dockerop.ShortID])
		}
	}
	return names, nil
}

// fillAnonymous fills the volumes that the engine has made together with a container. o says
// more of the worker. What it returns, also with an error, must be closed; it is nil if
// there is nothing to fill.
func (e *Engine) fillAnonymous(ctx context.Context, id labels.ID, volumes []newVolume, names []string, o volumebackup.RestoreOptions, p plan.Progress) (*filled, error) {
	var targets []volumebackup.Target
	o.Fill = &volumebackup.Fill{}
	for i, v := range volumes {
		if v.archive != nil {
			targets = append(targets, v.target(names[i], o.Fill))
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
