package snapshot

import (
	"errors"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
)

// latestIs is the ID of the snapshot that latest means.
func latestIs(t *testing.T, docker *enginetest.Docker) string {
	t.Helper()
	s, err := engineOf(docker).Resolve(t.Context(), "web:latest")
	assert.NilError(t, err)
	return string(s.ID)
}

// create makes a snapshot by a client of its own.
func createBy(t *testing.T, docker *enginetest.Docker, client byte, name string) (capture.Created, error) {
	t.Helper()
	engine := engineCounting(docker, client)
	return engine.Create(t.Context(), capture.Options{Container: "web", Name: name}, nil)
}

// The tag is the name: a client that was killed before it set it has left a snapshot
// without one.
func TestANameIsThereOnlyWithItsTag(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *enginetest.Docker){
		"killed before the tag": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			docker.DieAt = "ImageTag"
			_, err := createBy(t, docker, 1, "one")
			assert.Assert(t, err != nil)
			docker.DieAt, docker.Dead = "", false
		},
		"untagged by the user": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			_, err := createBy(t, docker, 1, "one")
			assert.NilError(t, err)
			assert.NilError(t, engineOf(docker).docker.RemoveImage(t.Context(), "cua-snapshot/web:one"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			docker.Run(t, "web")
			prepare(t, docker)

			all, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
			assert.NilError(t, err)
			assert.Equal(t, len(all), 1)
			assert.Equal(t, all[0].Name, "")
			found, err := engineOf(docker).Resolve(t.Context(), string(all[0].ID))
			assert.NilError(t, err)
			assert.Equal(t, found.Name, "")
			for _, word := range []string{"web:one", "one"} {
				_, err := engineOf(docker).Resolve(t.Context(), word)
				assert.Assert(t, cerrdefs.IsNotFound(err), "%v", err)
			}
			candidates, err := engineOf(docker).References(t.Context(), "web:one")
			assert.NilError(t, err)
			assert.Equal(t, len(candidates), 0)

			again, err := createBy(t, docker, 2, "one")
			assert.NilError(t, err)
			found, err = engineOf(docker).Resolve(t.Context(), "web:one")
			assert.NilError(t, err)
			found.Layers = nil // Create does not look at the image that it has made
			assert.DeepEqual(t, found, again.Snapshot)
		})
	}
}

// Who takes a tag away takes nothing but the name: the labels are still what was sealed.
func TestASnapshotWithoutItsNameIsStillOfThisEngine(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	made, err := createBy(t, docker, 1, "one")
	assert.NilError(t, err)
	e := engineOf(docker)
	assert.NilError(t, e.docker.RemoveImage(t.Context(), "cua-snapshot/web:one"))
	for range 2 { // before and after it is annotated
		report, err := e.Verify(t.Context(), verify.Options{}, nil)
		assert.NilError(t, err)
		assert.Equal(t, len(report.Results), 1)
		assert.Equal(t, len(report.Results[0].Findings), 0, "%v", report.Results[0].Findings)
		found, err := e.Resolve(t.Context(), string(made.ID))
		assert.NilError(t, err)
		key, err := e.catalog.KnownKey(t.Context())
		assert.NilError(t, err)
		assert.Assert(t, !found.IsForeign(found.EngineID, key))
		_, err = e.Annotate(t.Context(), capture.Annotation{Snapshot: string(made.ID), Tag: []string{"x"}}, nil)
		assert.NilError(t, err)
	}
	_, err = e.Restore(t.Context(), runconfig.RestoreOptions{Snapshot: string(made.ID)}, nil)
	assert.NilError(t, err)
}

// The ID tag is the snapshot. What is left of one that has lost it keeps only its name.
func TestWithoutItsIDTagThereIsNoSnapshot(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	made, err := createBy(t, docker, 1, "one")
	assert.NilError(t, err)
	e := engineOf(docker)
	assert.NilError(t, e.docker.RemoveImage(t.Context(), made.Ref()))
	for _, word := range []string{"web:one", "one", "web", "web:latest", string(made.ID)} {
		_, err := e.Resolve(t.Context(), word)
		assert.Assert(t, cerrdefs.IsNotFound(err), "%s: %v", word, err)
	}
	all, err := e.List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(all), 0)
	_, err = createBy(t, docker, 2, "one")
	taken, ok := errors.AsType[*catalog.NameTakenError](err)
	assert.Assert(t, ok && !taken.Reuse, "%v", err)
	assert.NilError(t, e.docker.RemoveImage(t.Context(), taken.Tag))
	again, err := createBy(t, docker, 3, "one")
	assert.NilError(t, err)
	for _, word := range []string{"web:one", "web:latest", "web"} {
		found, err := e.Resolve(t.Context(), word)
		assert.NilError(t, err)
		assert.Equal(t, found.ID, again.ID, word)
	}
}

// An engine may need a millisecond for each of its images to find those of a name.
func TestToTakeANameNoImagesAreListed(t *testing.T) {
	docker, _ := withSnapshots(t, "web:one")
	assert.NilError(t, engineOf(docker).docker.RemoveImage(t.Context(), "cua-snapshot/web:one"))
	docker.ForgetCalls()
	_, err := createBy(t, docker, 2, "one")
	assert.NilError(t, err)
	assert.Equal(t, docker.Count("ImageList"), 1, "for latest: %v", docker.Calls)
}

// The first of two is stopped at every moment at which the second can overtake it: if that is under the lock of the name, for so
// long that it counts as dead.
func TestOfTwoWhoWantANameOneGetsIt(t *testing.T) {
	for _, moment := range []string{"ImageInspect cua-snapshot/web:one", "ImageTag", "ImageList"} {
		t.Run(moment, func(t *testing.T) {
			docker := enginetest.New()
			docker.Run(t, "web")
			var second capture.Created
			var secondErr error
			docker.Before(moment, 0, func() { second, secondErr = createBy(t, docker, 2, "one") })
			first, err := createBy(t, docker, 1, "one")

			winner := first
			if err != nil {
				winner = second
				err, secondErr = secondErr, err
			}
			assert.NilError(t, err)
			var taken *catalog.NameTakenError
			assert.Assert(t, errors.As(secondErr, &taken), "%v", secondErr)
			all, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
			assert.NilError(t, err)
			assert.Equal(t, len(all), 1)
			assert.DeepEqual(t, all[0], winner.Snapshot)
			assert.Equal(t, latestIs(t, docker), string(winner.ID))
		})
	}
}

// An engine that is out of reach for a while does not hear that the lock is released.
func TestToGiveANameBackNobodyWaitsForItself(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	const lock = "cua-snapshot-name-"
	docker.Before("VolumeInspect "+lock, 0, func() {
		docker.Refused = []string{"VolumeInspect " + lock, "VolumeRemove " + lock, "ImageList"}
		docker.Before("ImageList", 0, func() { docker.Refused = []string{"ImageList"} })
	})
	_, err := createBy(t, docker, 1, "one")
	assert.ErrorContains(t, err, "refused ImageList")
	docker.Refused = nil
	assert.Equal(t, docker.Count("VolumeCreate "+lock), 2, "to take it, and to give it back: %v", docker.Calls)
	_, err = createBy(t, docker, 2, "one")
	assert.NilError(t, err)
}

// What was begun first may end last.
func TestLatestIsTheNewestOfThoseMadeAtOnce(t *testing.T) {
	for _, pause := range []time.Duration{0, 30 * time.Second, 5 * time.Minute, 3 * time.Hour, 10 * 24 * time.Hour, 100 * 24 * time.Hour} {
		t.Run(pause.String(), func(t *testing.T) {
			docker, _ := withSnapshots(t, "web")
			var newer capture.Created
			docker.Before("ImageTag", 0, func() {
				docker.Clock = docker.Clock.Add(pause)
				var err error
				newer, err = createBy(t, docker, 2, "")
				assert.NilError(t, err)
				docker.Clock = docker.Clock.Add(pause)
			})
			older, err := createBy(t, docker, 1, "")
			assert.NilError(t, err)
			assert.Equal(t, latestIs(t, docker), string(newer.ID))
			assert.DeepEqual(t, older.Refs, []string{older.Ref()})
		})
	}
}

// Two that were begun in the same second, in either order of their IDs.
func TestLatestWithinOneSecond(t *testing.T) {
	for _, clients := range [][2]byte{{1, 2}, {2, 1}} {
		docker, _ := withSnapshots(t, "web")
		start := docker.Clock.Add(time.Hour)
		tick := func() time.Time { start = start.Add(time.Millisecond); return start }
		by := func(client byte) (capture.Created, error) {
			p := partsOf(docker)
			p.random, p.now = &enginetest.Counter{Last: client}, tick
			return assemble(p).Create(t.Context(), capture.Options{Container: "web"}, nil)
		}
		var newer capture.Created
		docker.Before("ImageTag", 0, func() { newer, _ = by(clients[1]) })
		_, err := by(clients[0])
		assert.NilError(t, err)
		assert.Equal(t, latestIs(t, docker), string(newer.ID))
	}
}

func TestLatestStaysRightIfOneIsMadeWhileTheNewestIsRemoved(t *testing.T) {
	for name, snapshots := range map[string][]string{"of two": {"web:older", "web:newest"}, "the only one": {"web:newest"}} {
		for _, moment := range []string{"ImageInspect cua-snapshot/web:latest", "ImageTag", "ImageList", "ImageRemove"} {
			t.Run(name+", "+moment, func(t *testing.T) {
				docker, _ := withSnapshots(t, snapshots...)
				var made capture.Created
				docker.Before(moment, 0, func() {
					var err error
					made, err = createBy(t, docker, 2, "")
					assert.NilError(t, err)
				})
				remove(t, docker, "web:newest")
				if docker.DoBefore != nil {
					return // nothing is tagged
				}
				assert.Equal(t, latestIs(t, docker), string(made.ID))
			})
		}
	}
}

// What cannot be made takes nothing from what was made meanwhile.
func TestAFailedSnapshotLeavesLatestToTheNewest(t *testing.T) {
	docker, _ := withSnapshots(t, "web")
	var newer capture.Created
	docker.Before("ImageTag", 0, func() { // of the name that both want
		var err error
		newer, err = createBy(t, docker, 2, "one")
		assert.NilError(t, err)
	})
	_, err := createBy(t, docker, 1, "one")
	assert.ErrorContains(t, err, "web:one exists already")
	assert.Equal(t, latestIs(t, docker), string(newer.ID))
}
