package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// linkScene is an engine with a snapshot of container app, whose root filesystem and volumes lead into each other.
func linkScene(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	app := docker.Create(t, "db", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data", "other:/var/run/other", "etc:/srv/etc"}})
	app.State, app.Files = "running", tarOf(t, "root",
		"app/data -> /data", "app/up -> ../data/./", "app/file -> /files", "app/out -> ../../../../files", "loop -> app/../loop", "var/run -> /run", "run/",
		"srv/root -> /", "srv/hidden -> /srv/etc/files")
	docker.FindVolume("data").Content = "out -> /files\nback -> /app/data/content\nabove -> ../../app/file\nside -> dir/../content\nself -> self\n" +
		"other -> /run/other/content\nnone -> content/../content\ndir/\n"
	docker.FindVolume("other").Content = "of the other"
	docker.FindVolume("etc").Content = "of etc"
	snapshotOf(t, docker, capture.Options{Container: "db", Name: "one"})
	docker.ForgetCalls()
	return docker
}

func sourceOf(ctx context.Context, docker *enginetest.Docker, volume, path string) (extract.Source, error) {
	s, err := engineOf(docker).Resolve(ctx, "db:one")
	return extract.Source{Snapshot: s, Volume: volume, Path: path}, err
}

// extracted is the name and the content of the first file in a tar of a source.
func extracted(ctx context.Context, t *testing.T, docker *enginetest.Docker, source extract.Source) (name, content string, err error) {
	t.Helper()
	source.Snapshot, err = engineOf(docker).Resolve(ctx, "db:one")
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

// extractCase is a path of a snapshot, and what comes of it.
type extractCase struct{ volume, path, name, content, fails string }

// checkExtracted extracts each, and changes nothing.
func checkExtracted(t *testing.T, docker *enginetest.Docker, cases []extractCase, follow bool) {
	t.Helper()
	before := docker.World()
	for _, test := range cases {
		name, content, err := extracted(t.Context(), t, docker, extract.Source{Volume: test.volume, Path: test.path, Follow: follow})
		if test.fails != "" {
			assert.ErrorContains(t, err, test.fails, test.path)
			continue
		}
		assert.NilError(t, err, test.path)
		assert.Equal(t, name, test.name, test.path)
		assert.Assert(t, strings.HasPrefix(content, test.content), "%s: %s", test.path, content)
	}
	assert.Equal(t, docker.World(), before)
}

func TestExtractFindsTheMount(t *testing.T) {
	checkExtracted(t, extractScene(t), []extractCase{
		{"", "/files", "is-root", "", ""},
		{"", "/srv/data/content", "content", "of the volume", ""},
		{"", "//srv/./data/sub/../content", "content", "of the volume", ""},
		{"", "/srv/data:/content", "content", "of the volume", ""},
		{"data", "/content", "content", "of the volume", ""},
		{"/srv/data", "/content", "content", "of the volume", ""},
		{"/srv/data/", "/content/.", ".", "of the volume", ""},
		{"", "/srv/database", "", "", `there is no "/srv/database" in the root filesystem of snapshot `},
		{"", "/srv/data/none", "", "", `there is no "/srv/data/none" in volume data of snapshot `},
		{"", "/srv/data/run/x", "", "", "the mount at /srv/data/run is not in snapshot "},
		{"none", "/x", "", "", `there is no "/x" in volume none of snapshot `},
	}, false)
}

// A symlink leads where it led in the container: from the root filesystem into volumes, back, and never out of its root.
func TestExtractFollowsLinksAcrossMounts(t *testing.T) {
	const ofData = "out -> /files"
	checkExtracted(t, linkScene(t), []extractCase{
		{"", "/app/data/content", "content", ofData, ""},
		{"", "/app/up/content", "content", ofData, ""},
		{"", "/app/out", "out", "", ""},                               // the link itself
		{"", "/data/back/.", ".", ofData, ""},                         // out of the volume, and back into it
		{"", "/data/side/.", ".", ofData, ""},                         // dots within the volume
		{"data", "/out/.", ".", "", "there is no"},                    // a file of the root filesystem as a directory
		{"", "/run/other/content", "content", "of the other", ""},     // what is mounted at /var/run, which is a link
		{"", "/var/run/other/content", "content", "of the other", ""}, //
		{"", "/srv/root/app/data/content", "content", ofData, ""},
		{"", "/loop/x", "", "", `"/loop/x" leads through more than 40 symlinks`},
		{"", "/data/self/x", "", "", `"/data/self/x" leads through more than 40 symlinks`},
		{"", "/data/none/x", "", "", `there is no "/data/none/x" in volume data`}, // dots behind a file
		{"", "/app/data/x", "", "", `there is no "/app/data/x" in volume data`},
		{"", "/files/x", "", "", `there is no "/files/x" in the root filesystem`},
	}, false)
	checkExtracted(t, linkScene(t), []extractCase{ // at the end of the path, too
		{"", "/app/out", "is-root", "", ""},
		{"data", "/out", "is-root", "", ""},
		{"", "/data/above", "is-root", "", ""},
		{"", "/data/back", "back", ofData, ""},
		{"", "/data/other", "other", "of the other", ""},
		{"", "/srv/hidden", "", "", `there is no "/srv/hidden" in volume etc`}, // what a mount hides is not in the container
		{"", "/app/data/content", "content", ofData, ""},
	}, true)
}

func TestExtractSaysWhatIsNotCopiedAlong(t *testing.T) {
	docker := extractScene(t)
	source, err := sourceOf(t.Context(), docker, "", "/srv/data")
	assert.NilError(t, err)
	var said []string
	err = engineOf(docker).ExtractTar(t.Context(), source, io.Discard, func(e plan.Event) { said = append(said, e.Text) })
	assert.NilError(t, err)
	assert.Assert(t, slices.Contains(said, "tmpfs is not copied along: it is mounted at /srv/data/run"), "%v", said)
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

func TestChildren(t *testing.T) {
	for path, want := range map[string][]extract.Child{
		"/":              {{Name: "app", IsDirectory: true}, {Name: "data", IsDirectory: true}, {Name: "is-root"}, {Name: "loop"}, {Name: "run", IsDirectory: true}, {Name: "srv", IsDirectory: true}, {Name: "var", IsDirectory: true}},
		"/app/":          {{Name: "data"}, {Name: "file"}, {Name: "out"}, {Name: "up"}},
		"/var/":          {{Name: "run", IsDirectory: true}}, // somewhere below it something is mounted
		"/var/run/":      {{Name: "other", IsDirectory: true}},
		"/var/run/other": {{Name: "content"}},
		"/etc/":          nil,
	} {
		docker := linkScene(t)
		source, err := sourceOf(t.Context(), docker, "", path)
		assert.NilError(t, err)
		got, err := engineOf(docker).Children(t.Context(), source)
		assert.NilError(t, err)
		assert.DeepEqual(t, got, want)
	}
}
