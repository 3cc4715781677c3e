package snapshot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// annotatedScene is an engine with container db, which has a volume, two snapshots of it, and a
// container that was made from the older one, which has a name and a tag of its user.
func annotatedScene(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	docker.Create(t, "db", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}}).State = "running"
	snapshotOf(t, docker, capture.Options{Container: "db", Name: "one", Tags: []string{"a"}, Meta: map[string]string{"k": "v", "l": "w"}})
	snapshotOf(t, docker, capture.Options{Container: "db"})
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "db:one", Name: "copy"}, nil)
	assert.NilError(t, err)
	assert.NilError(t, docker.ImageTag(t.Context(), "cua-snapshot/db:one", "cua-snapshot/db:users-own"))
	docker.Randomness = 100
	docker.ForgetCalls()
	return docker
}

func everything() capture.Annotation {
	name, description, pinned, expires := "two", "why", true, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return capture.Annotation{
		Snapshot: "db:one", Name: &name, Description: &description, Tag: []string{"b"}, Untag: []string{"a"},
		Meta: map[string]string{"m": "x"}, Unmeta: []string{"k"}, Pinned: &pinned, Expires: &expires,
	}
}

func TestAnnotateChangesWhatIsKnownAndNothingElse(t *testing.T) {
	docker := annotatedScene(t)
	before, err := engineOf(docker).Resolve(t.Context(), "db:one")
	assert.NilError(t, err)
	layers := docker.FindImage(before.ImageID).Layers

	now, err := engineOf(docker).Annotate(t.Context(), everything(), nil)
	assert.NilError(t, err)

	found, err := engineOf(docker).Resolve(t.Context(), "db:two")
	assert.NilError(t, err)
	assert.DeepEqual(t, found, now)
	want := before.Record
	want.Name, want.Description, want.Tags, want.Meta, want.Pinned = "two", "why", []string{"b"}, map[string]string{"l": "w", "m": "x"}, true
	want.Expires, want.Updated, want.Former, want.Seal = *everything().Expires, found.Updated, []string{before.ImageID}, found.Seal
	assert.DeepEqual(t, found.Record, want)
	assert.Assert(t, !found.Updated.IsZero() && found.ImageID != before.ImageID)
	assert.DeepEqual(t, docker.FindImage(found.ImageID).Layers, layers)
	assert.Assert(t, slices.Contains(found.Refs, "cua-snapshot/db:users-own"))
	_, err = engineOf(docker).Resolve(t.Context(), "db:one")
	assert.Assert(t, cerrdefs.IsNotFound(err), "%v", err)
	assert.Assert(t, !strings.Contains(docker.World(), catalog.ScratchPrefix), docker.World())
	assert.Assert(t, docker.FindImage(before.ImageID) != nil, "a container is made of it")

	// It is of this engine still: nothing has to be allowed.
	_, err = engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "db:two"}}, nil)
	assert.NilError(t, err)
	var warned []string
	tell := func(e plan.Event) { warned = append(warned, e.Text) }
	removed := engineOf(docker).Remove(t.Context(), []string{"db:two"}, removal.Options{Force: true}, tell)
	assert.NilError(t, removed[0].Err)
	assert.Assert(t, strings.Contains(strings.Join(warned, "\n"), "after the removal of containers copy, db frees them"), "%v", warned)
}

func TestAnnotateManyTimesKeepsNoFormerImageThatNobodyUses(t *testing.T) {
	docker := annotatedScene(t)
	for n := range 20 {
		tag := string(rune('a' + n))
		s, err := engineOf(docker).Annotate(t.Context(), capture.Annotation{Snapshot: "db", Tag: []string{tag}}, nil)
		assert.NilError(t, err)
		assert.Equal(t, len(s.Former), 1)
		assert.Equal(t, len(s.Tags), n+1)
	}
	s, err := engineOf(docker).Resolve(t.Context(), "db:one")
	assert.NilError(t, err)
	for range 3 {
		s, err = engineOf(docker).Annotate(t.Context(), capture.Annotation{Snapshot: "db:one", Tag: []string{"x"}}, nil)
		assert.NilError(t, err)
	}
	assert.Equal(t, len(s.Former), 2, "the one that the copy uses, and the last")
}

func TestAnnotateRefuses(t *testing.T) {
	docker := annotatedScene(t)
	snapshotOf(t, docker, capture.Options{Container: "db", Name: "taken"})
	before := docker.World()
	for want, name := range map[string]string{"exists already": "taken", "invalid snapshot name": "a/b"} {
		_, err := engineOf(docker).Annotate(t.Context(), capture.Annotation{Snapshot: "db:one", Name: &name}, nil)
		assert.ErrorContains(t, err, want)
	}
	_, err := engineOf(docker).Annotate(t.Context(), capture.Annotation{Snapshot: "db:none"}, nil)
	assert.Assert(t, cerrdefs.IsNotFound(err))
	_, err = engineOf(docker).Annotate(t.Context(), capture.Annotation{Snapshot: "db:one", Meta: map[string]string{"a b": "c"}}, nil)
	assert.ErrorContains(t, err, "invalid key")
	assert.Equal(t, docker.World(), before)
}

// What was made elsewhere is not made ours by a change of its name.
func TestAnAnnotatedForeignSnapshotStaysForeign(t *testing.T) {
	docker := annotatedScene(t)
	s, err := engineOf(docker).Resolve(t.Context(), "db:one")
	assert.NilError(t, err)
	docker.FindImage(s.ImageID).Config.Labels["cua.snapshot.platform"] = "linux/other"
	now, err := engineOf(docker).Annotate(t.Context(), everything(), nil)
	assert.NilError(t, err)
	assert.Equal(t, now.Seal, "")
}

// Whatever goes wrong, and if the client is killed, the snapshot is what it was, or what it was to
// become: by its ID, by its names and in lists.
func TestAnAnnotationIsDoneOrNot(t *testing.T) {
	t.Parallel()
	operate := func(ctx context.Context, e *Engine) error {
		_, err := e.Annotate(ctx, everything(), nil)
		return err
	}
	check := func(t *testing.T, o enginetest.Outcome) {
		t.Helper()
		docker := o.Docker
		docker.ClientDies()
		client := engineOf(docker)
		all, err := client.List(t.Context(), catalog.ListOptions{}, nil)
		assert.NilError(t, err)
		assert.Equal(t, len(all), 2, docker.World())
		s := all[1]
		byID, err := client.Resolve(t.Context(), "db:"+string(s.ID))
		assert.NilError(t, err)
		assert.DeepEqual(t, byID.Tags, s.Tags)
		assert.Equal(t, byID.ImageID, s.ImageID)
		isNew := s.Pinned
		switch {
		case isNew:
			assert.DeepEqual(t, s.Tags, []string{"b"})
			assert.Equal(t, s.Description, "why")
		default:
			assert.DeepEqual(t, s.Tags, []string{"a"})
			assert.Equal(t, s.Name, "one")
			assert.Assert(t, o.Err != nil)
		}
		if o.Kind != enginetest.FaultDie && o.Err != nil {
			assert.Assert(t, !isNew, "it was not rolled back")
			assert.Equal(t, tagsOf(o.After), tagsOf(o.Before))
		}
		for _, word := range []string{"db:users-own", "db:one", "db:two"} {
			byName, err := client.Resolve(t.Context(), word)
			if err == nil {
				assert.Equal(t, byName.ImageID, s.ImageID, word)
			} else {
				assert.Assert(t, cerrdefs.IsNotFound(err) && word != "db:users-own", "%s: %v", word, err)
			}
		}
		removed := client.Remove(t.Context(), []string{string(s.ID)}, removal.Options{Force: true}, nil)
		assert.NilError(t, removed[0].Err)
		assert.Assert(t, !strings.Contains(tagsOf(docker.World()), "users-own"), docker.World())
		assert.Assert(t, !strings.Contains(tagsOf(docker.World()), string(s.ID)), docker.World())
	}
	withEachFault(t, annotatedScene, operate, check)
	withFaults(t, []enginetest.FaultKind{enginetest.FaultDie}, annotatedScene, operate, check)
}
