//go:build e2e

package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// leftovers is everything that there is of a cell. It has no networks, and the plugin makes none.
type leftovers struct {
	containers []container.Summary
	images     []image.Summary
	volumes    []*volume.Volume
	unfinished []string // folders in the store that no operation works on, if none is under way
}

// leftovers finds everything of the cell.
func (f *fixture) leftovers(ctx context.Context) (found leftovers) {
	f.Helper()
	containers, err := docker.ContainerList(ctx, container.ListOptions{All: true})
	assert.NilError(f, err)
	for _, c := range containers {
		isNamed := slices.ContainsFunc(c.Names, func(name string) bool { return strings.HasPrefix(name, "/"+f.prefix) })
		if isNamed || f.mounts(c) {
			found.containers = append(found.containers, c)
		}
	}
	found.images = f.images(ctx)
	volumes, err := docker.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("name", f.prefix))})
	assert.NilError(f, err)
	found.volumes = volumes.Volumes
	for _, v := range found.volumes {
		if v.Name == f.store() {
			found.unfinished, err = filepath.Glob(filepath.Join(v.Mountpoint, "tmp", "*"))
			assert.NilError(f, err)
		}
	}
	return found
}

// images are those of the cell's snapshots. They are found by their names, or have none: to look for a label, engine 29 reads every
// image that there is. [checkNoSnapshots] finds what has another name.
func (f *fixture) images(ctx context.Context) (found []image.Summary) {
	f.Helper()
	for _, which := range []filters.KeyValuePair{filters.Arg("reference", "cua-snapshot/"+f.prefix+"*"), filters.Arg("dangling", "true")} {
		images, err := docker.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(which)})
		assert.NilError(f, err)
		for _, i := range images {
			if i.Labels["cua.snapshot.store"] == f.store() {
				found = append(found, i)
			}
		}
	}
	return found
}

// checkNoSnapshots checks that there is no image of any cell's snapshot once each has removed its own.
func checkNoSnapshots(t *testing.T) {
	t.Helper()
	images, err := docker.ImageList(t.Context(), image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "cua.snapshot.id"))})
	assert.NilError(t, err)
	for _, i := range images {
		if store := i.Labels["cua.snapshot.store"]; matches(t, "f????????-store", store) {
			t.Errorf("image %s %s of %s is left", i.ID, i.RepoTags, store)
		}
	}
}

// mounts tells whether a container mounts a volume of the cell, as its workers do.
func (f *fixture) mounts(c container.Summary) bool {
	return slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return strings.HasPrefix(m.Name, f.prefix) })
}

// left describes what there is too much of the cell once the snapshots have been listed.
func (f *fixture) left(c cell) string {
	f.Helper()
	listed := f.listed()
	return f.leftovers(f.Context()).without(f, c, listed)
}

// without describes what belongs neither to the fixture nor to a listed snapshot, nor to what a command has made that is done.
// If nobody was left to remove an image that was not published, it may wait: it is removed when it is an hour old.
func (l leftovers) without(f *fixture, c cell, listed []string) string {
	f.Helper()
	s, known := c.scenario, map[string]bool{}
	for name := range f.states {
		known[name] = true
	}
	if len(s.makes) > 0 && s.printed(f) != "" {
		for _, name := range s.makes {
			known[name] = true
		}
	}
	var left []string
	for _, c := range l.containers {
		name := dockerop.SummaryName(c) // engine 20.10 lists one without a name while it removes it
		if !known[strings.TrimPrefix(name, f.prefix)] {
			left = append(left, "container "+name+" "+c.Status)
		}
	}
	for _, i := range l.images {
		isPublished := slices.ContainsFunc(i.RepoTags, func(tag string) bool { return tag != "<none>:<none>" })
		if !slices.Contains(listed, i.Labels["cua.snapshot.id"]) && (isPublished || !c.fault.isSudden()) {
			left = append(left, fmt.Sprintf("image %s %s", i.ID, i.RepoTags))
		}
	}
	for _, v := range l.volumes {
		isOurs := slices.ContainsFunc(l.containers, func(c container.Summary) bool {
			return slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return m.Name == v.Name })
		})
		if !isOurs && v.Name != f.store() {
			left = append(left, "volume "+v.Name)
		}
	}
	for _, folder := range l.unfinished {
		left = append(left, "in the store "+filepath.Base(folder))
	}
	return strings.Join(left, ", ")
}
