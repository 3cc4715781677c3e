//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// volumesTest is a running container with volumes. The test reads their content from outside.
type volumesTest struct {
	*testing.T
	prefix string
}

// newVolumesTest starts it; the volumes are mounted at /0, /1 ….
func newVolumesTest(t *testing.T, volumes int) volumesTest {
	v := volumesTest{t, ownPrefix(t, "exact")}
	args := []string{"run", "--detach", "--name", v.prefix + "-web"}
	for n := range volumes {
		args = append(args, "--volume", fmt.Sprintf("%s-%d:/%d", v.prefix, n, n))
	}
	v.docker(append(args, "busybox", "sleep", "1000")...)
	return v
}

func (v volumesTest) docker(args ...string) string {
	v.Helper()
	out, err := docker(args...)
	assert.NilError(v, err)
	return out
}

// directories are the directories of a container's volumes on this machine, by where they are mounted.
func (v volumesTest) directories(container string) map[string]string {
	v.Helper()
	found := map[string]string{}
	for line := range strings.Lines(v.docker("inspect", "--format", `{{range .Mounts}}{{.Destination}} {{.Source}}{{"\n"}}{{end}}`, container)) {
		destination, source, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[destination] = source
	}
	delete(found, "")
	return found
}

// describe lists what is in a container's volumes.
func (v volumesTest) describe(container string) map[string][]string {
	v.Helper()
	all := map[string][]string{}
	for destination, dir := range v.directories(container) {
		all[destination] = archivetest.Describe(v, dir)
	}
	return all
}

func (v volumesTest) create(name string) {
	v.Helper()
	v.docker("snapshot", "create", "--store", v.prefix+"-store", v.prefix+"-web", name)
}

// checkRestored checks that a copy holds exactly what was there when the snapshot was taken.
func (v volumesTest) checkRestored(name string, want map[string][]string) {
	v.Helper()
	copied := v.prefix + "-copy"
	v.docker("snapshot", "restore", "--store", v.prefix+"-store", "--no-start", "--name", copied, v.prefix+"-web:"+name)
	got := v.describe(copied)
	assert.Equal(v, len(got), len(want))
	for destination, lines := range want {
		archivetest.Equal(v, got[destination], lines)
	}
	v.removeWithVolumes(copied)
}

func (v volumesTest) removeWithVolumes(container string) {
	v.Helper()
	volumes := mounted(v.Context(), []string{container})
	v.docker("rm", container)
	v.docker(append([]string{"volume", "rm"}, volumes...)...)
}

func TestVolumesComeBackExactly(t *testing.T) {
	t.Parallel()
	v := newVolumesTest(t, 1)
	archivetest.Build(t, v.directories(v.prefix + "-web")["/0"])
	want := v.describe(v.prefix + "-web")
	v.create("one")
	v.create("two") // without reading anything again
	for _, name := range []string{"one", "two"} {
		v.checkRestored(name, want)
	}
	archivetest.Equal(t, v.describe(v.prefix + "-web")["/0"], want["/0"])
}

// Random trees are changed at random between snapshots. The snapshots are deleted in random order, and each that is left
// restores what was there.
func TestAnySnapshotOfRandomTreesRestores(t *testing.T) {
	t.Parallel()
	const volumes = 4
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	v := newVolumesTest(t, volumes)
	directories := v.directories(v.prefix + "-web")
	mutate := func(times int) {
		for n := range volumes { // in this order, so that the seed says all
			for range times {
				archivetest.Mutate(t, directories[fmt.Sprintf("/%d", n)], r)
			}
		}
	}
	mutate(30)
	want := map[string]map[string][]string{}
	var left []string
	for n := range 3 * rounds() {
		name := fmt.Sprintf("s%d", n)
		v.create(name)
		want[name] = v.describe(v.prefix + "-web")
		left = append(left, name)
		mutate(r.IntN(10))
	}
	for len(left) > 0 {
		chosen := left[r.IntN(len(left))]
		v.checkRestored(chosen, want[chosen])
		at := r.IntN(len(left))
		v.docker("snapshot", "rm", "--store", v.prefix+"-store", v.prefix+"-web:"+left[at])
		left = append(left[:at], left[at+1:]...)
	}
}
