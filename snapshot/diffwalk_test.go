package snapshot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// walkScene is a diffScene with a root filesystem that is worth a walk, in which the engine mounts what it does.
func walkScene(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := diffScene(t)
	docker.Service.RootEntries = 100_000
	docker.Service.WalkedMounts = []string{"data", "dev", "proc"}
	return docker
}

// walked tells whether a comparison with the container has walked or exported its root filesystem. An export of the snapshot
// is not meant.
func walked(t *testing.T, docker *enginetest.Docker, o diff.Options) (walks, exports int) {
	t.Helper()
	docker.ForgetCalls()
	got, err := diffOf(t.Context(), docker, o)
	assert.NilError(t, err)
	assert.Assert(t, slices.Contains(got, "rootfs / modified"), "%v", got)
	count := func(call string) (n int) {
		for _, c := range docker.Calls {
			if c == call || strings.HasPrefix(c, call+" ") {
				n++
			}
		}
		return n
	}
	return count("walk"), count("ContainerExport") - 1
}

func TestTheRootFilesystemOfARunningContainerIsWalked(t *testing.T) {
	docker := walkScene(t)
	walks, exports := walked(t, docker, diff.Options{Old: "db:two", Volumes: []string{diff.Rootfs}})
	assert.Equal(t, walks, 1)
	assert.Equal(t, exports, 0)
	assert.Equal(t, len(docker.Service.WalkedRoots), 1, "the next walk is told of it")
	docker.Service.WalkedRoots = map[string]bool{}
}

// Where nobody can be sure that a walk sees everything, the engine exports.
func TestWhatCannotBeWalkedIsExported(t *testing.T) {
	for name, change := range map[string]func(docker *enginetest.Docker, db *enginetest.FakeContainer){
		"it is small":           func(docker *enginetest.Docker, _ *enginetest.FakeContainer) { docker.Service.RootEntries = 100 },
		"it does not run":       func(_ *enginetest.Docker, db *enginetest.FakeContainer) { db.State = "exited" },
		"it is paused":          func(_ *enginetest.Docker, db *enginetest.FakeContainer) { db.State = "paused" },
		"processes of the host": func(_ *enginetest.Docker, db *enginetest.FakeContainer) { db.Host.PidMode = "host" },
		"processes of another":  func(_ *enginetest.Docker, db *enginetest.FakeContainer) { db.Host.PidMode = "container:other" },
		"it is privileged":      func(_ *enginetest.Docker, db *enginetest.FakeContainer) { db.Host.Privileged = true },
		"it may mount":          func(_ *enginetest.Docker, db *enginetest.FakeContainer) { db.Host.CapAdd = []string{"cap_sys_admin"} },
		"it may do all":         func(_ *enginetest.Docker, db *enginetest.FakeContainer) { db.Host.CapAdd = []string{"ALL"} },
		"of another container":  func(_ *enginetest.Docker, db *enginetest.FakeContainer) { db.ID = strings.Repeat("e", 64) },
		"started again since": func(docker *enginetest.Docker, db *enginetest.FakeContainer) {
			db.Restarted(docker.Clock.Add(time.Hour))
		},
		"somebody has mounted": func(docker *enginetest.Docker, _ *enginetest.FakeContainer) {
			docker.Service.WalkedMounts = []string{"etc"}
		},
		"the walk does not work": func(docker *enginetest.Docker, _ *enginetest.FakeContainer) { docker.Refused = []string{"walk"} },
	} {
		t.Run(name, func(t *testing.T) {
			docker := walkScene(t)
			change(docker, docker.FindContainer("db"))
			_, exports := walked(t, docker, diff.Options{Old: "db:two", New: "db", Volumes: []string{diff.Rootfs}})
			assert.Equal(t, exports, 1)
			assert.Equal(t, len(docker.Service.WalkedRoots), 0)
		})
	}
}

// A container that a snapshot was restored to has beneath its mounts what the snapshot has there.
func TestAContainerOfTheSnapshotIsWalked(t *testing.T) {
	docker := walkScene(t)
	two := snapshotOf(t, docker, capture.Options{Container: "db", Name: "three"})
	db := docker.FindContainer("db")
	db.ID, db.Image = strings.Repeat("e", 64), two.ImageID
	db.Files = tarOf(t, "later")
	walks, exports := walked(t, docker, diff.Options{Old: "db:three", New: "db", Volumes: []string{diff.Rootfs}})
	assert.Equal(t, walks, 1)
	assert.Equal(t, exports, 0)
}

// Whatever goes wrong with a walk, the comparison is made or fails, and nothing is left.
func TestAWalkLeavesNothing(t *testing.T) {
	enginetest.EachFault(t, walkScene, func(ctx context.Context, docker *enginetest.Docker) error {
		got, err := diffOf(ctx, docker, diff.Options{Old: "db:two"})
		if err == nil && !slices.Contains(got, "rootfs / modified") {
			t.Errorf("found only %v", got)
		}
		return err
	}, func(t *testing.T, o enginetest.Outcome) {
		if o.Kind == enginetest.FaultRefuse && o.Hit("ContainerRemove") { // recover removes it later
			assert.ErrorContains(t, o.Err, "ContainerRemove")
			return
		}
		assert.Equal(t, o.After, o.Before)
	})
}
