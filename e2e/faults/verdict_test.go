//go:build e2e

package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"
)

// patience is how long another process may take. A worker that was never started counts as new for 10 s.
const patience = time.Minute

// runCell makes a fixture, runs the command with its fault, and checks that everything holds. It returns the number of
// requests.
func runCell(t *testing.T, c cell) int {
	t.Helper()
	f := newFixture(t)
	c.scenario.prepare(f)
	f.observeStates()
	var args []string
	for _, arg := range c.scenario.command {
		args = append(args, strings.ReplaceAll(arg, "%s", f.prefix))
	}
	p, address := startProxy(t, socket, c.fault, c.at)
	o := f.run(address, args...)
	p.pending.Wait()
	requests, hit := p.seen()
	defer func() {
		if t.Failed() {
			t.Logf("%s of %q\n%s: %s", c.fault, hit, args, o)
		}
	}()

	if o.status == 0 {
		c.scenario.done(f, o)
	} else {
		f.checkStates()
	}
	f.repair()
	if o.status == 0 {
		c.scenario.done(f, o)
		f.checkSnapshots()
		return requests
	}
	f.checkStates()
	assert.Equal(t, f.captured(), f.before)
	if removed := f.snapshots[c.scenario.removes]; removed != "" && !slices.Contains(f.listed(), removed) {
		delete(f.contents, removed)
		f.checkSnapshots()
		return requests
	}
	f.checkSnapshots()

	again := f.run("unix://"+socket, args...)
	if again.status != 0 {
		t.Errorf("run again, it fails: %s", again)
		return requests
	}
	c.scenario.done(f, again)
	if c.scenario.removes != "" {
		clear(f.checked)
	}
	f.checkSnapshots()
	return requests
}

// checkStates waits until every container is in its old state.
func (f *fixture) checkStates() {
	f.Helper()
	now := map[string]string{}
	poll(func() bool {
		for name := range f.states {
			now[name] = f.state(name)
		}
		return maps.Equal(now, f.states)
	})
	assert.DeepEqual(f, now, f.states)
}

// poll repeats a check until it holds, or for as long as our patience lasts.
func poll(holds func() bool) bool {
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// repair runs docker snapshot recover until nothing is left over.
func (f *fixture) repair() {
	f.Helper()
	var o outcome
	var left string
	if !poll(func() bool {
		o = f.run("unix://"+socket, "recover", f.prefix+"db")
		left = f.leftovers(f.Context()).without(f)
		return o.status == 0 && left == ""
	}) {
		f.Errorf("this is left over: %s\nrecover: %s", left, o)
	}
}

// listed are the IDs of the snapshots that ls shows.
func (f *fixture) listed() []string {
	f.Helper()
	return strings.Fields(f.succeed("ls", "--quiet", f.prefix+"db"))
}

// checkSnapshots restores every listed snapshot, unless that was done, and compares. Those that the cell began with must be
// there.
func (f *fixture) checkSnapshots() {
	f.Helper()
	listed := f.listed()
	for id := range f.contents {
		assert.Assert(f, slices.Contains(listed, id), "snapshot %s is gone", id)
	}
	for i, id := range listed {
		if f.checked[id] {
			continue
		}
		f.checked[id] = true
		want, known := f.contents[id]
		if !known {
			want = f.before
		}
		name := fmt.Sprintf("%scheck-%d", f.prefix, i)
		made := f.succeed("restore", "--no-start", "--name", name, id)
		found, err := docker.ContainerInspect(f.Context(), made)
		assert.NilError(f, err)
		assert.Equal(f, f.contentOf(found), want, "snapshot %s", id)
		f.checkCounts(found)
		assert.NilError(f, docker.ContainerRemove(f.Context(), made, container.RemoveOptions{Force: true}))
		for _, m := range found.Mounts {
			assert.NilError(f, docker.VolumeRemove(f.Context(), m.Name, true))
		}
	}
}

// leftovers is everything that there is of a cell. It has no networks.
type leftovers struct {
	containers []container.Summary
	images     []image.Summary
	volumes    []*volume.Volume
}

// leftovers finds everything of the cell.
func (f *fixture) leftovers(ctx context.Context) (found leftovers) {
	f.Helper()
	containers, err := docker.ContainerList(ctx, container.ListOptions{All: true})
	assert.NilError(f, err)
	for _, c := range containers {
		isWorker := slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return strings.HasPrefix(m.Name, f.prefix) })
		isNamed := slices.ContainsFunc(c.Names, func(name string) bool { return strings.HasPrefix(name, "/"+f.prefix) })
		if isWorker || isNamed {
			found.containers = append(found.containers, c)
		}
	}
	found.images, err = docker.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "cua.snapshot.container.name="+f.prefix+"db"))})
	assert.NilError(f, err)
	volumes, err := docker.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("name", f.prefix))})
	assert.NilError(f, err)
	found.volumes = volumes.Volumes
	return found
}

// without describes what belongs neither to the fixture nor to a listed snapshot.
func (l leftovers) without(f *fixture) string {
	f.Helper()
	var left []string
	for _, c := range l.containers {
		name := strings.TrimPrefix(c.Names[0], "/"+f.prefix)
		if _, known := f.states[name]; !known {
			left = append(left, "container "+c.Names[0]+" "+c.Status)
		}
	}
	listed := f.listed()
	for _, i := range l.images {
		if !slices.Contains(listed, i.Labels["cua.snapshot.id"]) {
			left = append(left, fmt.Sprintf("image %s %s", i.ID, i.RepoTags))
		}
	}
	for _, v := range l.volumes {
		isOurs := slices.ContainsFunc(l.containers, func(c container.Summary) bool {
			return slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return m.Name == v.Name })
		})
		if !isOurs && v.Name != f.prefix+"store" {
			left = append(left, "volume "+v.Name)
		}
	}
	return strings.Join(left, ", ")
}
