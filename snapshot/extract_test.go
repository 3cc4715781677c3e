package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// extractScene is an engine with a snapshot of container db, which has a root filesystem, a volume and a bind mount.
func extractScene(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	db := docker.Create(t, "db", &container.Config{}, &container.HostConfig{
		Binds:  []string{"data:/srv/data"},
		Mounts: []mount.Mount{{Type: mount.TypeTmpfs, Target: "/srv/data/run"}},
	})
	db.State, db.Files = "running", tarOf(t, "root")
	docker.FindVolume("data").Content = "of the volume"
	snapshotOf(t, docker, capture.Options{Container: "db", Name: "one"})
	db.Files, docker.FindVolume("data").Content = "", "later"
	docker.ForgetCalls()
	return docker
}

func sourceOf(ctx context.Context, docker *enginetest.Docker, volume, path string) (extract.Source, error) {
	s, err := engineOf(docker).Resolve(ctx, "db:one")
	return extract.Source{Snapshot: s, Volume: volume, Path: path}, err
}

// extracted is the name and the content of the first file in a tar of a source.
func extracted(ctx context.Context, t *testing.T, docker *enginetest.Docker, volume, path string) (name, content string, err error) {
	t.Helper()
	source, err := sourceOf(ctx, docker, volume, path)
	assert.NilError(t, err)
	var out bytes.Buffer
	if err := engineOf(docker).ExtractTar(ctx, source, &out, nil); err != nil {
		return "", "", err
	}
	files := tar.NewReader(&out)
	h, err := files.Next()
	assert.NilError(t, err)
	read, err := io.ReadAll(files)
	return h.Name, string(read), err
}

func TestExtractFindsTheMount(t *testing.T) {
	docker := extractScene(t)
	before := docker.World()
	for _, test := range []struct{ volume, path, name, content, fails string }{
		{"", "/files", "is-root", "", ""},
		{"", "/srv/data/content", "content", "of the volume", ""},
		{"", "//srv/./data/sub/../content", "content", "of the volume", ""},
		{"", "/srv/data:/content", "content", "of the volume", ""},
		{"data", "/content", "content", "of the volume", ""},
		{"/srv/data", "/content", "content", "of the volume", ""},
		{"/srv/data/", "/content/.", ".", "of the volume", ""},
		{"", "/srv/database", "", "", `there is no "/srv/database" in the root filesystem of snapshot `},
		{"", "/srv/data/none", "", "", `there is no "/srv/data/none" in volume data of snapshot `},
		{"", "/srv/data/run/x", "", "", "what is mounted at /srv/data/run is not in snapshot "},
		{"none", "/x", "", "", `there is no "/x" in volume none of snapshot `},
	} {
		name, content, err := extracted(t.Context(), t, docker, test.volume, test.path)
		if test.fails != "" {
			assert.ErrorContains(t, err, test.fails)
			continue
		}
		assert.NilError(t, err, test.path)
		assert.Equal(t, name, test.name, test.path)
		assert.Equal(t, content, test.content, test.path)
	}
	assert.Equal(t, docker.World(), before)
}

func TestExtractSaysWhatIsNotCopiedAlong(t *testing.T) {
	docker := extractScene(t)
	source, err := sourceOf(t.Context(), docker, "", "/srv/data")
	assert.NilError(t, err)
	var said []string
	_ = engineOf(docker).ExtractTar(t.Context(), source, io.Discard, func(e plan.Event) { said = append(said, e.Text) })
	assert.Equal(t, said[0], "tmpfs is not copied along: it is mounted at /srv/data/run")
}

func TestExtractUnpacks(t *testing.T) {
	docker := extractScene(t)
	source, err := sourceOf(t.Context(), docker, "data", "/content")
	assert.NilError(t, err)
	dir := t.TempDir()
	assert.NilError(t, engineOf(docker).Extract(t.Context(), source, dir, nil))
	content, err := os.ReadFile(filepath.Join(dir, "content"))
	assert.NilError(t, err)
	assert.Equal(t, string(content), "of the volume")

	source.Path = "/none"
	err = engineOf(docker).Extract(t.Context(), source, dir, nil)
	assert.ErrorContains(t, err, `there is no "/none" in volume data`)
	var none *extract.NoPathError
	assert.Assert(t, errors.As(err, &none))
	docker.ForgetCalls()
	err = engineOf(docker).Extract(t.Context(), source, filepath.Join(dir, "content/x"), nil)
	assert.ErrorContains(t, err, "it is not a directory")
	assert.Equal(t, len(docker.Calls), 0) // nobody was asked
}

// Whatever goes wrong, nothing changes and nothing is left.
func TestExtractLeavesNothing(t *testing.T) {
	for _, path := range []string{"/files", "/srv/data/content"} {
		t.Run(path, func(t *testing.T) {
			enginetest.EachFault(t, extractScene, func(ctx context.Context, docker *enginetest.Docker) error {
				source, err := sourceOf(ctx, docker, "", path)
				if err != nil {
					return err
				}
				return engineOf(docker).Extract(ctx, source, filepath.Join(t.TempDir(), "new"), nil)
			}, func(t *testing.T, o enginetest.Outcome) {
				if o.Kind == enginetest.FaultRefuse && o.Hit("ContainerRemove") { // recover removes it later
					return
				}
				assert.Equal(t, o.After, o.Before)
			})
		})
	}
}

func TestChildrenLeadToMounts(t *testing.T) {
	docker := extractScene(t)
	for path, want := range map[string][]extract.Child{
		"/": {{Name: "srv", IsDirectory: true}}, "/srv/": {{Name: "data", IsDirectory: true}}, "/srv/data/": {{Name: "run", IsDirectory: true}}, "/etc/": nil,
	} {
		source, err := sourceOf(t.Context(), docker, "", path)
		assert.NilError(t, err)
		got, err := engineOf(docker).Children(t.Context(), source)
		assert.NilError(t, err)
		assert.DeepEqual(t, got, want)
	}
}
