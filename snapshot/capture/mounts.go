package capture

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// captureMounts records every mount of the container, and why those are skipped
// whose content will not be in the snapshot. Of bind mounts it will be in it if their key is in included.
// They are sorted by destination.
func (cr *Capturer) captureMounts(ctx context.Context, c container.InspectResponse, included []string) ([]labels.Mount, error) {
	var mounts []labels.Mount
	for _, point := range c.Mounts {
		m, err := cr.captureMount(ctx, c, point, included)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, m)
	}
	if c.HostConfig != nil {
		for destination := range c.HostConfig.Tmpfs {
			mounts = append(mounts, labels.Mount{Type: string(mount.TypeTmpfs), Destination: path.Clean(destination), RW: true, Skipped: skippedTmpfs})
		}
	}
	slices.SortFunc(mounts, func(a, b labels.Mount) int { return strings.Compare(a.Destination, b.Destination) })
	return mounts, nil
}

// Why the content of a mount is not in a snapshot.
const (
	skippedBind  = "bind mount: its content belongs to the host"
	skippedTmpfs = "tmpfs: its content is in memory"
	skippedOther = "mounts of this type are not captured"
)

func (cr *Capturer) captureMount(ctx context.Context, c container.InspectResponse, point container.MountPoint, included []string) (labels.Mount, error) {
	m := labels.Mount{Type: string(point.Type), Name: point.Name, Destination: point.Destination, RW: point.RW}
	switch point.Type {
	case mount.TypeVolume:
		return cr.captureVolume(ctx, c, m)
	case mount.TypeBind:
		m.Source = point.Source
		if !slices.Contains(included, m.Key()) {
			m.Skipped = skippedBind
		}
	case mount.TypeTmpfs:
		m.Skipped = skippedTmpfs
	default:
		m.Source, m.Skipped = point.Source, skippedOther
	}
	return m, nil
}

// captureVolume adds what the volume itself knows: its driver, options and labels.
func (cr *Capturer) captureVolume(ctx context.Context, c container.InspectResponse, m labels.Mount) (labels.Mount, error) {
	m.Subpath = runconfig.Subpath(c, m.Destination)
	v, err := cr.docker.VolumeInspect(ctx, m.Name)
	switch {
	case cerrdefs.IsNotFound(err):
		m.Skipped = "the volume is gone"
		return m, nil
	case err != nil:
		return m, fmt.Errorf("inspect volume %s: %w", m.Name, err)
	}
	_, labelled := v.Labels[runconfig.LabelAnonymous]
	m.Driver, m.Options, m.Labels = v.Driver, v.Options, v.Labels
	m.Anonymous = runconfig.IsAnonymousName(m.Name) && (labelled || !runconfig.NamesVolume(c.HostConfig, m.Name))
	if m.Name == cr.volumes.Store() || v.Labels[labels.KeyStoreID] != "" {
		m.Skipped = "it is the store of the snapshots"
	}
	return m, nil
}
