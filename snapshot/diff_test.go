package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// diffScene is an engine with container db, which has a volume, and has changed between two snapshots and since.
func diffScene(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	db := docker.Create(t, "db", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	db.State = "running"
	for i, name := range []string{"one", "two", ""} {
		docker.FindVolume("data").Content, db.Files = strings.Repeat("x", i), tarOf(t, name)
		if name != "" {
			snapshotOf(t, docker, capture.Options{Container: "db", Name: name})
		}
	}
	docker.ForgetCalls()
	return docker
}

// tarOf is a tar of a file, and of directories ("dir/") and symlinks ("link -> target").
func tarOf(t *testing.T, name string, further ...string) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	assert.NilError(t, w.WriteHeader(&tar.Header{Name: "is-" + name, Typeflag: tar.TypeReg}))
	for _, other := range further {
		h := &tar.Header{Name: other, Typeflag: tar.TypeDir}
		if at, target, isLink := strings.Cut(other, " -> "); isLink {
			h = &tar.Header{Name: at, Linkname: target, Typeflag: tar.TypeSymlink}
		}
		assert.NilError(t, w.WriteHeader(h))
	}
	assert.NilError(t, w.Close())
	return out.String()
}

func diffOf(ctx context.Context, docker *enginetest.Docker, o diff.Options) (places []string, err error) {
	err = engineOf(docker).Diff(ctx, o, nil, func(c diff.Change) {
		places = append(places, c.Volume+" "+c.Destination+" "+string(c.Type))
	})
	return places, err
}

func TestDiffComparesPlaceByPlace(t *testing.T) {
	docker := diffScene(t)
	before := docker.World()
	both := []string{"rootfs / modified", "data /data modified"}
	for name, test := range map[string]struct {
		options diff.Options
		want    []string
	}{
		"two snapshots": {diff.Options{Old: "db:one", New: "db:two"}, both},
		"until now":     {diff.Options{Old: "db:one"}, both},
		"a container":   {diff.Options{Old: "db:one", New: "db"}, both},
		"itself":        {diff.Options{Old: "db:one", New: "db:one"}, nil},
		"a volume":      {diff.Options{Old: "db:one", Volumes: []string{"data"}}, both[1:]},
		"a place":       {diff.Options{Old: "db:one", Volumes: []string{"/data/"}}, both[1:]},
		"the rootfs":    {diff.Options{Old: "db:one", Volumes: []string{"rootfs"}}, both[:1]},
		"not a volume":  {diff.Options{Old: "db:one", Without: []string{"data"}}, both[:1]},
		"what is left":  {diff.Options{Old: "db:one", New: "db:two", Left: true}, both[1:]},
	} {
		got, err := diffOf(t.Context(), docker, test.options)
		assert.NilError(t, err, name)
		assert.DeepEqual(t, got, test.want)
		assert.Equal(t, docker.World(), before, name)
	}
	_, err := diffOf(t.Context(), docker, diff.Options{Old: "db:one", Volumes: []string{"none"}})
	assert.ErrorContains(t, err, "there is no volume none on either side")
}

// A path need not have changed, but it has to exist.
func TestDiffOfAPathThatDoesNotExist(t *testing.T) {
	docker := diffScene(t)
	for _, now := range []string{"db:one", "db:two", ""} {
		o := diff.Options{Old: "db:two", New: now, Strict: true, Paths: []string{"/data/content", "!/data/none"}}
		_, err := diffOf(t.Context(), docker, o)
		assert.NilError(t, err)
		o.Paths = append(o.Paths, "/data/typo")
		_, err = diffOf(t.Context(), docker, o)
		assert.Error(t, err, `"/data/typo" matches no file on either side`)
	}
}

// A container that is gone leaves its volumes, or nothing.
func TestDiffOfWhatIsLeft(t *testing.T) {
	docker := diffScene(t)
	assert.NilError(t, docker.ContainerRemove(t.Context(), "db", container.RemoveOptions{Force: true}))
	_, err := diffOf(t.Context(), docker, diff.Options{Old: "db:two"})
	assert.ErrorContains(t, err, "there is no container db")
	left := func() (deltas []int64) {
		assert.NilError(t, engineOf(docker).Diff(t.Context(), diff.Options{Old: "db:two", Left: true}, nil, func(c diff.Change) {
			assert.Equal(t, c.Volume, "data")
			deltas = append(deltas, c.SizeDelta)
		}))
		return deltas
	}
	assert.DeepEqual(t, left(), []int64{1})
	assert.NilError(t, docker.VolumeRemove(t.Context(), "data", true))
	assert.DeepEqual(t, left(), []int64{-1})
}

// Whatever goes wrong, nothing changes and nothing is left.
func TestDiffLeavesNothing(t *testing.T) {
	enginetest.EachFault(t, diffScene, func(ctx context.Context, docker *enginetest.Docker) error {
		got, err := diffOf(ctx, docker, diff.Options{Old: "db:one", New: "db:two"})
		if err == nil && !slices.Contains(got, "data /data modified") {
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
