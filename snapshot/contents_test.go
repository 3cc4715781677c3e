package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
)

// tarWith is a tar of one file.
func tarWith(t *testing.T, h tar.Header, content string) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	h.Name, h.Size = "files", int64(len(content))
	assert.NilError(t, w.WriteHeader(&h))
	_, err := w.Write([]byte(content))
	assert.NilError(t, err)
	assert.NilError(t, w.Close())
	return out.String()
}

// contentScene is an engine whose container db has one file in snapshot one, another now, and a volume.
func contentScene(t *testing.T, before, now string) *enginetest.Docker {
	t.Helper()
	docker := diffScene(t)
	docker.Containers[0].Files = before
	docker.FindVolume("data").Content = "of the volume"
	snapshotOf(t, docker, capture.Options{Container: "db", Name: "old"})
	docker.Containers[0].Files = now
	docker.FindVolume("data").Content = "later"
	docker.ForgetCalls()
	return docker
}

func TestContents(t *testing.T) {
	text := func(content string) string { return tarWith(t, tar.Header{Typeflag: tar.TypeReg}, content) }
	docker := contentScene(t, text("before"), text("now"))
	snapshotOf(t, docker, capture.Options{Container: "db", Name: "new"})
	before := docker.World()
	for _, o := range []diff.Options{{Old: "db:old"}, {Old: "db:old", New: "db"}, {Old: "db:old", New: "db:new"}} {
		was, is, err := engineOf(docker).Contents(t.Context(), o, enginetest.FakePath, nil)
		assert.NilError(t, err)
		assert.Equal(t, string(was.Content)+" "+string(is.Content), "before now")
	}
	was, is, err := engineOf(docker).Contents(t.Context(), diff.Options{Old: "db:old", New: "db:new"}, "/data/content", nil)
	assert.NilError(t, err)
	assert.Equal(t, string(was.Content)+" "+string(is.Content), "of the volume later")
	_, _, err = engineOf(docker).Contents(t.Context(), diff.Options{Old: "db:old"}, "/none", nil)
	assert.ErrorContains(t, err, `there is no "/none"`)
	assert.Equal(t, docker.World(), before)
}

func TestContentsRefusesWhatIsNoSmallFile(t *testing.T) {
	small := tarWith(t, tar.Header{Typeflag: tar.TypeReg}, "small")
	for _, large := range []bool{true, false} {
		docker := contentScene(t, tarWith(t, tar.Header{Typeflag: tar.TypeReg}, strings.Repeat("x", extract.MaxContent+1)), small)
		if !large {
			docker = contentScene(t, small, tarWith(t, tar.Header{Typeflag: tar.TypeDir}, ""))
		}
		_, _, err := engineOf(docker).Contents(t.Context(), diff.Options{Old: "db:old"}, enginetest.FakePath, nil)
		assert.ErrorContains(t, err, map[bool]string{true: `"/files" has 1048577 bytes: the limit is 1048576`, false: `"/files" is no regular file`}[large])
	}
	docker := contentScene(t, small, tarWith(t, tar.Header{Typeflag: tar.TypeSymlink, Linkname: "elsewhere"}, ""))
	_, now, err := engineOf(docker).Contents(t.Context(), diff.Options{Old: "db:old"}, enginetest.FakePath, nil)
	assert.NilError(t, err)
	assert.Equal(t, string(now.Content), "elsewhere\n")
}

// Whatever goes wrong, nothing changes, and nothing is taken for the content that is not.
func TestContentsLeavesNothing(t *testing.T) {
	scene := func(t *testing.T) *enginetest.Docker {
		text := func(content string) string { return tarWith(t, tar.Header{Typeflag: tar.TypeReg}, content) }
		return contentScene(t, text("before"), text("now"))
	}
	enginetest.EachFault(t, scene, func(ctx context.Context, docker *enginetest.Docker) error {
		was, is, err := engineOf(docker).Contents(ctx, diff.Options{Old: "db:old"}, enginetest.FakePath, nil)
		if err == nil && string(was.Content)+" "+string(is.Content) != "before now" {
			t.Errorf("found %q and %q", was.Content, is.Content)
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
