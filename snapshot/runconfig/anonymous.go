package runconfig

import (
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// BecomesAnonymous tells whether the engine can make a volume like m together with the container.
// It refuses a read-only one, cannot let two mounts share one, and with another driver configured
// it would not make the local one that we want.
func (sp *Spec) BecomesAnonymous(m labels.Mount, mounts []labels.Mount) bool {
	used := 0
	for _, other := range mounts {
		if other.Type == string(mount.TypeVolume) && other.Name == m.Name {
			used++
		}
	}
	driver := sp.Host.VolumeDriver
	return m.Anonymous && m.RW && m.Subpath == "" && len(m.Options) == 0 && !pointsElsewhere(m) && used == 1 &&
		(driver == "" || driver == "local") && len(sp.Host.VolumesFrom) == 0
}

// MountAnonymous makes the configuration mount a new anonymous volume where m was.
func (sp *Spec) MountAnonymous(m labels.Mount) {
	sp.Host.Binds = slices.DeleteFunc(sp.Host.Binds, func(text string) bool {
		b, ok := parseBind(text)
		return ok && !b.IsPath() && isAt(b.Destination, m.Destination)
	})
	for i := range sp.Host.Mounts {
		point := &sp.Host.Mounts[i]
		if point.Type == mount.TypeVolume && isAt(point.Target, m.Destination) {
			point.Source = ""
			point.VolumeOptions = anonymousOptions(point.VolumeOptions)
			return
		}
	}
	isDestination := func(text string) bool { return isAt(text, m.Destination) }
	for destination := range sp.Config.Volumes {
		if isDestination(destination) {
			return
		}
	}
	if !slices.ContainsFunc(sp.Host.Binds, isDestination) { // the API can ask for one there, too
		sp.Host.Mounts = append(sp.Host.Mounts, mount.Mount{Type: mount.TypeVolume, Target: m.Destination})
	}
}

// anonymousOptions returns the options of a captured mount that also apply to a new, local volume.
func anonymousOptions(captured *mount.VolumeOptions) *mount.VolumeOptions {
	if captured == nil {
		return nil
	}
	kept := &mount.VolumeOptions{NoCopy: captured.NoCopy}
	for key, value := range withoutOurs(captured.Labels) {
		if !isActing(key) && key != LabelAnonymous {
			if kept.Labels == nil {
				kept.Labels = map[string]string{}
			}
			kept.Labels[key] = value
		}
	}
	return kept
}

// NamesVolume reports whether a configuration mounts a volume by its name, which then is a user's choice, unless the volume has
// [LabelAnonymous]: Compose carries anonymous volumes over by their names.
func NamesVolume(host *container.HostConfig, name string) bool {
	if host == nil {
		return false
	}
	return slices.ContainsFunc(host.Binds, func(text string) bool {
		b, ok := parseBind(text)
		return ok && b.Source == name
	}) || slices.ContainsFunc(host.Mounts, func(m mount.Mount) bool { return m.Type == mount.TypeVolume && m.Source == name })
}

// IsAnonymousName tells whether a name looks like those that engines make up for anonymous volumes.
func IsAnonymousName(name string) bool {
	return labels.IsDigits(name, dockerop.FullID, dockerop.FullID)
}

// LabelAnonymous is on volumes that the engine named itself, since 23.0.
const LabelAnonymous = "com.docker.volume.anonymous"
