package build

import (
	"cmp"
	"context"
	"fmt"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// ReservedVolumes returns the volumes that only this program may use.
func (b *Builder) ReservedVolumes() []string {
	return []string{b.volumes.Store(), volumebackup.DefaultStore}
}

// Observe asks the engine, all at once, for everything that a restore of s as sp depends on.
// volumes are the keys of the volumes and directories that must exist. It makes nothing.
func (b *Builder) Observe(ctx context.Context, s catalog.Snapshot, sp *runconfig.Spec, volumes []string, p plan.Progress) (runconfig.Surroundings, error) {
	var found runconfig.Surroundings
	var names, paths []string
	for _, key := range volumes {
		if labels.IsPathKey(key) {
			paths = append(paths, key)
		} else {
			names = append(names, key)
		}
	}
	calls, ctx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		found.Key, err = b.catalog.KnownKey(ctx)
		return err
	})
	calls.Go(func() (err error) {
		found.Inherited, err = b.ImageLabels(ctx, s)
		return err
	})
	calls.Go(func() (err error) {
		found.Info, err = b.docker.Info(ctx)
		return dockerop.Describe(err, "ask the engine who it is")
	})
	calls.Go(func() (err error) {
		found.Networks, err = b.docker.NetworkList(ctx, network.ListOptions{})
		return dockerop.Describe(err, "list networks")
	})
	calls.Go(func() (err error) {
		all, err := b.docker.ContainerList(ctx, container.ListOptions{All: true})
		if err != nil {
			return fmt.Errorf("list containers: %w", err)
		}
		found.Containers, err = b.pending.WithoutWorkers(ctx, all)
		return err
	})
	calls.Go(func() (err error) {
		found.Storage, err = storage.Observe(ctx, b.docker, p)
		return err
	})
	calls.Go(func() (err error) {
		found.NoVolume, err = dockerop.Absent(ctx, names, func(ctx context.Context, name string) error {
			_, err := b.docker.VolumeInspect(ctx, name)
			return err
		})
		return dockerop.Describe(err, "inspect volumes")
	})
	calls.Go(func() (err error) {
		found.NoPath, err = dockerop.Absent(ctx, dockerop.Distinct(sp.RequiredPaths(), paths), b.docker.CheckHostPath)
		return dockerop.Describe(err, "look for host paths")
	})
	return found, calls.Wait()
}

// ImageLabels returns the labels that a container made from the snapshot inherits.
func (b *Builder) ImageLabels(ctx context.Context, s catalog.Snapshot) (map[string]string, error) {
	id := cmp.Or(s.ImageID, s.Base)
	if id == "" { // it is lost, and no container is made from it
		return nil, nil
	}
	found, err := b.docker.ImageInspect(ctx, id)
	if err != nil || found.Config == nil {
		return nil, dockerop.Describe(err, "inspect image of snapshot "+string(s.ID))
	}
	return found.Config.Labels, nil
}

// UsersOf returns the containers that run or are paused and see the content of one of the volumes,
// without our workers.
func (b *Builder) UsersOf(ctx context.Context, s storage.Map, volumes []string) ([]container.Summary, error) {
	users, err := s.UsersAndWorkers(ctx, b.docker, volumes)
	if err != nil {
		return nil, err
	}
	return b.pending.WithoutWorkers(ctx, users)
}
