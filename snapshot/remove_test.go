package snapshot

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

func removeOne(t *testing.T, e *Engine, word string, o removal.Options, p plan.Progress) (catalog.Snapshot, error) {
	t.Helper()
	results := e.Remove(t.Context(), []string{word}, o, p)
	assert.Equal(t, len(results), 1)
	return results[0].Snapshot, results[0].Err
}

func remove(t *testing.T, docker *enginetest.Docker, word string) catalog.Snapshot {
	t.Helper()
	s, err := removeOne(t, engineOf(docker), word, removal.Options{}, nil)
	assert.NilError(t, err)
	return s
}

func TestRemoveMovesLatestToTheNewestThatIsLeft(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two", "web:three", "db:one")
	latest := func() string {
		s, err := engineOf(docker).Resolve(t.Context(), "web:latest")
		if cerrdefs.IsNotFound(err) {
			return "none"
		}
		assert.NilError(t, err)
		return s.Name
	}
	assert.Equal(t, remove(t, docker, "web:one").ID, made[0].ID)
	assert.Equal(t, latest(), "three")
	remove(t, docker, "three")
	assert.Equal(t, latest(), "two")
	remove(t, docker, "web:latest")
	assert.Equal(t, latest(), "none")
	assert.Assert(t, !strings.Contains(docker.World(), "cua-snapshot/web"))
	assert.Assert(t, strings.Contains(docker.World(), "cua-snapshot/db"))
}

// A container's name stands for its newest snapshot elsewhere. What cannot be taken back does not guess.
func TestRemoveRefusesTheNameOfAContainer(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two", "web:web")
	before := docker.World()
	_, err := removeOne(t, engineOf(docker), "web", removal.Options{Force: true}, nil)
	assert.Error(t, err, "web is a container, not a snapshot")
	copied := engineOf(docker).RemoveCopies(t.Context(), []string{"web"}, true, nil)
	assert.Error(t, copied[0].Err, "web is a container, not a snapshot")
	assert.Equal(t, docker.World(), before)
	assert.Equal(t, remove(t, docker, "web:web").ID, made[2].ID)
	assert.Equal(t, remove(t, docker, "web:latest").ID, made[1].ID)

	docker.FindImage(made[0].ImageID).Config.Labels[labels.KeyRestores] = string(made[1].ID)
	_, err = removeOne(t, engineOf(docker), "web", removal.Options{}, nil)
	assert.Error(t, err, "web is a container, not a snapshot")
	_, err = removeOne(t, engineOf(docker), "nothing", removal.Options{}, nil)
	assert.Error(t, err, "no such snapshot: nothing")
}

// A removal takes the name first. If the client is killed then, the same words remove the snapshot all the same.
func TestARemovalThatWasKilledIsDoneByTheSameWord(t *testing.T) {
	for _, word := range []string{"web:two", "two"} {
		for _, call := range []string{"ImageRemove cua-snapshot/web:two", "ImageRemove cua-snapshot/web:2"} {
			t.Run(word+", killed before "+call, func(t *testing.T) {
				docker, made := withSnapshots(t, "web:one", "web:two", "web:three")
				docker.DieAt = call
				_, err := removeOne(t, engineOf(docker), word, removal.Options{}, nil)
				assert.Assert(t, err != nil && docker.Dead, "%v", docker.Calls)
				docker.DieAt, docker.Dead = "", false
				found, err := engineOf(docker).Resolve(t.Context(), string(made[1].ID))
				assert.NilError(t, err)
				assert.Equal(t, found.Name+found.LostName, "two")
				assert.Equal(t, remove(t, docker, word).ID, made[1].ID)
				_, err = engineOf(docker).Resolve(t.Context(), string(made[1].ID))
				assert.Assert(t, cerrdefs.IsNotFound(err))
				assert.Assert(t, !strings.Contains(docker.World(), "cua-snapshot-name-"), docker.World())
				assert.Equal(t, latestIs(t, docker), string(made[2].ID))
			})
		}
	}
}

// A name that somebody has taken away by hand means nothing, also to a removal.
func TestANameThatWasLostIsNotRemovedBy(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two")
	assert.NilError(t, engineOf(docker).docker.RemoveImage(t.Context(), "cua-snapshot/web:one"))
	docker.DieAt = "ImageRemove cua-snapshot/web:2"
	_, _ = removeOne(t, engineOf(docker), "two", removal.Options{}, nil)
	assert.Assert(t, docker.Dead)
	docker.DieAt, docker.Dead = "", false
	_, err := removeOne(t, engineOf(docker), "web:one", removal.Options{}, nil)
	assert.ErrorContains(t, err, "it has lost this name, and is still there as "+string(made[0].ID))
}

func TestRemoveByAnyWordRemovesEveryTag(t *testing.T) {
	for name, word := range map[string]func(catalog.Snapshot) string{
		"name":      func(s catalog.Snapshot) string { return s.Name },
		"reference": func(catalog.Snapshot) string { return "web:one" },
		"ID":        func(s catalog.Snapshot) string { return string(s.ID) },
		"prefix":    func(s catalog.Snapshot) string { return string(s.ID)[:16] },
		"image":     func(s catalog.Snapshot) string { return s.Ref() },
	} {
		t.Run(name, func(t *testing.T) {
			docker, made := withSnapshots(t, "web:one")
			remove(t, docker, word(made[0]))
			assert.Assert(t, !strings.Contains(docker.World(), "cua-snapshot"), docker.World())
			assert.Equal(t, len(docker.Images), 2)
		})
	}
}

func TestRemoveRefuses(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:pinned")
	assert.NilError(t, docker.ImageTag(t.Context(), made[1].ImageID, "cua-snapshot/web:pinned"))
	docker.FindImage(made[1].ImageID).Config.Labels["cua.snapshot.pinned"] = "true"
	before := docker.World()

	_, err := removeOne(t, engineOf(docker), "pinned", removal.Options{}, nil)
	assert.Error(t, err, "snapshot pinned ("+string(made[1].ID)+") is pinned")
	assert.Assert(t, cerrdefs.IsFailedPrecondition(err))
	_, err = removeOne(t, engineOf(docker), "gone", removal.Options{}, nil)
	assert.Assert(t, cerrdefs.IsNotFound(err))
	assert.Equal(t, docker.World(), before)

	_, err = removeOne(t, engineOf(docker), "pinned", removal.Options{Force: true}, nil)
	assert.NilError(t, err)
	assert.Assert(t, !strings.Contains(docker.World(), "pinned"))
}

// A container that was restored in place uses its snapshot from then on.
func TestRemoveOfOneInUseLeavesTheContainersAlone(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two")
	docker.Create(t, "zebra", &container.Config{Image: made[0].Ref()}, &container.HostConfig{})
	ape := docker.Create(t, "ape", &container.Config{Image: made[0].ImageID}, &container.HostConfig{})
	assert.NilError(t, docker.ContainerStart(t.Context(), ape.ID, container.StartOptions{}))

	var got enginetest.Events
	_, err := removeOne(t, engineOf(docker), "one", removal.Options{}, got.Progress)
	assert.NilError(t, err)
	assert.DeepEqual(t, got.Warnings(), []string{
		"the layers of one (" + string(made[0].ID) + ") stay: the next rm, prune or recover after the removal of containers ape, zebra frees them",
	})
	assert.Assert(t, !strings.Contains(docker.World(), string(made[0].ID)+" "), docker.World())
	_, err = engineOf(docker).Resolve(t.Context(), string(made[0].ID))
	assert.Assert(t, cerrdefs.IsNotFound(err))
	assert.Equal(t, ape.State, "running")
	assert.NilError(t, docker.ContainerStart(t.Context(), "zebra", container.StartOptions{}))
	remove(t, docker, "web:two")

	// The engine keeps the image for as long as a container runs on it; a later removal takes it.
	for _, name := range []string{"ape", "zebra"} {
		assert.NilError(t, docker.ContainerRemove(t.Context(), name, container.RemoveOptions{Force: true}))
	}
	docker.Clock = docker.Clock.Add(2 * orphanAge)
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "three"})
	remove(t, docker, "web:three")
	assert.Equal(t, len(docker.Images), 2, docker.World())
}

// A snapshot of a restored copy stands on the one that it was restored from.
func TestRemoveInAnyOrderLeavesNoImageBehind(t *testing.T) {
	for name, order := range map[string][]string{"oldest first": {"old", "young"}, "youngest first": {"young", "old"}} {
		t.Run(name, func(t *testing.T) {
			docker, _ := withSnapshots(t, "web:old")
			restore1(t, docker, runconfig.RestoreOptions{Snapshot: "old", Name: "copy"})
			snapshotOf(t, docker, capture.Options{Container: "copy", Name: "young"})
			assert.NilError(t, docker.ContainerRemove(t.Context(), "copy", container.RemoveOptions{Force: true}))
			for _, word := range order {
				remove(t, docker, word)
			}
			assert.Equal(t, len(docker.Images), 2, docker.World())
		})
	}
}

// What others built FROM a snapshot is theirs, and stays.
// The image of a removed snapshot goes with the first sweep after the containers that use it, however young it is.
func TestSweepFreesTheImageOfARemovedSnapshot(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two")
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy"}, nil)
	assert.NilError(t, err)
	remove(t, docker, "web:one")
	isThere := func() bool { return docker.FindImage(made[0].ImageID) != nil }
	outlook := func() removal.Outlook {
		found, err := engineOf(docker).Outlook(t.Context(), removal.OutlookOptions{}, nil)
		assert.NilError(t, err)
		return found
	}
	_, err = engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err)
	assert.Assert(t, isThere())
	assert.Equal(t, outlook().Removed, 1)

	assert.NilError(t, docker.ContainerRemove(t.Context(), "copy", container.RemoveOptions{Force: true}))
	assert.Equal(t, outlook().Removed, 1)
	_, err = engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err)
	assert.Assert(t, !isThere())
	assert.Equal(t, outlook().Removed, 0)
	assert.Assert(t, docker.FindImage(made[1].ImageID) != nil)
}

func TestRemoveLeavesImagesThatWereBuiltFromIt(t *testing.T) {
	docker, made := withSnapshots(t, "web:one")
	child := docker.AddImage("mine:latest", &container.Config{Labels: docker.FindImage(made[0].ImageID).Config.Labels})
	child.Parent = made[0].ImageID
	docker.Create(t, "user", &container.Config{Image: "mine", Cmd: []string{"x"}}, &container.HostConfig{})
	remove(t, docker, "one")
	assert.Assert(t, docker.FindImage("mine") != nil)
	assert.Assert(t, !strings.Contains(docker.World(), "cua-snapshot"))
}

// A stranger's image can claim the ID of a snapshot from here.
func TestRemoveOfAnotherImageOfThatIDKeepsTheArchives(t *testing.T) {
	docker := enginetest.New()
	service := docker.Service
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	made := snapshotOf(t, docker, capture.Options{Container: "web"})
	stolen := maps.Clone(docker.FindImage(made.ImageID).Config.Labels)
	stolen[labels.KeyContainerName] = "evil"
	docker.AddImage("cua-snapshot/evil:"+string(made.ID), &container.Config{Labels: stolen})

	_, err := removeOne(t, engineOf(docker), string(made.ID), removal.Options{Force: true}, nil)
	var ambiguous *catalog.AmbiguousError
	assert.Assert(t, errors.As(err, &ambiguous), "%v", err)
	assert.DeepEqual(t, slices.Sorted(slices.Values(ambiguous.Candidates)), []string{"evil:" + string(made.ID), "web:" + string(made.ID)})

	var got enginetest.Events
	_, err = removeOne(t, engineOf(docker), "evil:"+string(made.ID), removal.Options{}, got.Progress)
	assert.NilError(t, err)
	assert.DeepEqual(t, got.Warnings(), []string{"the archives of " + string(made.ID) + " stay: they belong to a snapshot of another container"})
	assert.Equal(t, len(service.Archives[string(made.ID)]), 1)
	assert.Assert(t, !strings.Contains(docker.World(), "evil"))

	assert.Equal(t, service.Origins[string(made.ID)].Container, web.ID)
	remove(t, docker, string(made.ID))
	assert.Equal(t, len(service.Archives), 0)
}

// The engine's image store may have been switched, which hides the images of the other.
func TestRemoveTellsTheStoreWhereItHasLooked(t *testing.T) {
	docker := enginetest.New()
	service := docker.Service
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	docker.About.Driver = "overlay2"
	docker.About.DriverStatus = [][2]string{{"Backing Filesystem", "extfs"}}
	old := snapshotOf(t, docker, capture.Options{Container: "web"})
	docker.About.Driver = "overlayfs"
	docker.About.DriverStatus = [][2]string{{"driver-type", "io.containerd.snapshotter.v1"}}
	recent := snapshotOf(t, docker, capture.Options{Container: "web"})
	assert.Equal(t, service.Origins[string(old.ID)].ImageStore, "overlay2")
	assert.Equal(t, service.Origins[string(recent.ID)].ImageStore, "overlayfs/io.containerd.snapshotter.v1")

	remove(t, docker, string(recent.ID))

	assert.DeepEqual(t, docker.Seen, []volumebackup.Seen{{
		Engine: "engine-1", ImageStore: "overlayfs/io.containerd.snapshotter.v1", Snapshots: []string{string(old.ID)},
	}})
}

// The client's clock is not compared with the engine's times.
func TestSweepGoesByTheEnginesClock(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two")
	orphan := docker.AddImage("", &container.Config{Labels: docker.FindImage(made[0].ImageID).Config.Labels})
	orphan.Comment = catalog.CommitComment(made[0].ID)
	client := engineOf(docker)
	client.now = func() time.Time { return docker.Clock.Add(1000 * orphanAge) }
	_, err := removeOne(t, client, "one", removal.Options{}, nil)
	assert.NilError(t, err)
	assert.Assert(t, docker.FindImage(orphan.ID) != nil)
	docker.Clock = docker.Clock.Add(orphanAge)
	client.now = func() time.Time { return time.Unix(0, 0) }
	_, err = removeOne(t, client, "two", removal.Options{}, nil)
	assert.NilError(t, err)
	assert.Assert(t, docker.FindImage(orphan.ID) == nil)
}

// Many are removed with one worker for each store, and the tag latest moves once. One that
// cannot be removed does not keep the others.
func TestRemoveOfManyIsOneRemovalForEachStore(t *testing.T) {
	docker := withMine(t, "id")
	for _, name := range []string{"two", "three", "four"} {
		snapshotOf(t, docker, capture.Options{Container: "web", Name: name, Pinned: name == "four"})
	}
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "five"})
	docker.ForgetCalls()

	results := engineOf(docker).Remove(t.Context(), []string{"web:one", "gone", "five", "four", "web", "three"}, removal.Options{}, nil)

	var got []string
	for _, r := range results {
		if r.Err != nil {
			got = append(got, r.Word+": "+r.Err.Error())
			continue
		}
		got = append(got, r.Word+" removed "+r.Snapshot.Name)
	}
	four, err := engineOf(docker).Resolve(t.Context(), "web")
	assert.NilError(t, err)
	assert.DeepEqual(t, got, []string{
		"web:one removed one", "gone: no such snapshot: gone", "five removed five", "four: snapshot four (" + string(four.ID) + ") is pinned",
		"web: web is a container, not a snapshot", "three removed three",
	})
	assert.Equal(t, four.Name, "four") // it is the latest now
	assert.Equal(t, len(docker.Seen), 2)
	assert.Equal(t, len(docker.Service.Archives), 2)
	tagged := slices.DeleteFunc(slices.Clone(docker.Calls), func(call string) bool { return !strings.HasPrefix(call, "ImageTag") })
	assert.Equal(t, len(tagged), 1, "%v", docker.Calls)
}

// That one store cannot be reached does not keep what is in another.
func TestRemoveGoesOnInTheOtherStores(t *testing.T) {
	docker := withMine(t, "id")
	two := snapshotOf(t, docker, capture.Options{Container: "web", Name: "two"})
	docker.FindVolume("mine").Labels[labels.KeyStoreID] = "another"
	results := engineOf(docker).Remove(t.Context(), []string{"one", "two"}, removal.Options{}, nil)
	assert.NilError(t, results[0].Err) // its archives went with its store
	assert.NilError(t, results[1].Err)
	_, there := docker.Service.Archives[string(two.ID)]
	assert.Assert(t, !there)
	assert.Equal(t, len(docker.Service.Archives), 1)
}

// A list of all costs less than to look for each of many.
func TestRemoveOfManyByTheirIDsListsThemOnce(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	var words []string
	const many = 8
	for i := range many {
		docker.Randomness = byte(10 * i)
		words = append(words, string(snapshotOf(t, docker, capture.Options{Container: "web"}).ID))
	}
	docker.ForgetCalls()
	for _, r := range engineOf(docker).Remove(t.Context(), words, removal.Options{}, nil) {
		assert.NilError(t, r.Err)
	}
	lists := slices.DeleteFunc(slices.Clone(docker.Calls), func(call string) bool { return !strings.HasPrefix(call, "ImageList") })
	assert.Assert(t, len(lists) < many, "%v", lists)
	assert.Equal(t, len(docker.Images), 2)
}
