//go:build linux

package worker

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// TestDiffComesWhole sends more changes than fit into one event, and none is left out.
func TestDiffComesWhole(t *testing.T) {
	w := newWorld(t)
	w.volume(0)
	c := w.connect()
	mount := protocol.Mount{Number: 0, Key: "v"}
	w.snapshot(c, "before", mount)
	const files = 3000
	for i := range files {
		name := strings.Repeat("n", 100) + string(rune('0'+i%10)) + strings.Repeat("m", i/10)[:min(i/10, 100)] + "\n"
		dir := filepath.Join(w.volume(0), string(rune('a'+i/1000)), string(rune('a'+i/100%10)))
		assert.NilError(t, os.MkdirAll(dir, 0o755))
		assert.NilError(t, os.WriteFile(filepath.Join(dir, name+string(rune('0'+i/10%10))), []byte("x"), 0o600))
	}
	before := protocol.Tree{Archive: &protocol.ArchiveRef{Snapshot: "before"}}
	count, bytes := 0, int64(0)
	events := map[protocol.Type]int{}
	assert.NilError(t, c.Diff(t.Context(), protocol.DiffRequest{Old: before, New: protocol.Tree{Mount: &mount}}, func(change protocol.FileChange) {
		assert.Equal(t, change.Type, changes.Created)
		count++
		bytes += change.SizeDelta
	}, func(e protocol.Event) { events[e.Type]++ }))
	assert.Equal(t, bytes, int64(files))
	assert.Equal(t, count, files+3+30)
	assert.Equal(t, events[protocol.TypeChanges], 0)
}

// TestImagesAreKept tells the worker of root filesystems, of which the store keeps those that it should.
func TestImagesAreKept(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	empty, kept, passing := "", strings.Repeat("aa", 32), strings.Repeat("bb", 32)
	known, err := c.Known(t.Context(), []string{kept})
	assert.NilError(t, err)
	assert.Equal(t, len(known), 0)
	assert.NilError(t, c.Learn(t.Context(), protocol.LearnRequest{Image: kept, Keep: true}, rootOf(t, "a", "b"), nil))
	assert.NilError(t, c.Learn(t.Context(), protocol.LearnRequest{Image: passing}, rootOf(t, "b", "c"), nil))
	known, err = c.Known(t.Context(), []string{kept, passing})
	assert.NilError(t, err)
	assert.Equal(t, len(known), 2)
	var got []string
	visit := func(change protocol.FileChange) { got = append(got, string(change.Type)+" "+string(change.Path)) }
	assert.NilError(t, c.Diff(t.Context(), protocol.DiffRequest{Old: protocol.Tree{Image: kept}, New: protocol.Tree{Image: passing}}, visit, nil))
	assert.DeepEqual(t, got, []string{"deleted a", "created c"})

	later := w.connect()
	known, err = later.Known(t.Context(), []string{kept, passing})
	assert.NilError(t, err)
	assert.Equal(t, len(known), 1)
	assert.Equal(t, known[0].Image, kept)
	path := filepath.Join(w.store, "images", kept+".man")
	content, err := os.ReadFile(path)
	assert.NilError(t, err)
	content[len(content)/2] ^= 1
	assert.NilError(t, os.WriteFile(path, content, 0o600))
	known, err = later.Known(t.Context(), []string{kept})
	assert.NilError(t, err)
	assert.Equal(t, len(known), 0)
	err = later.Learn(t.Context(), protocol.LearnRequest{Image: kept, Keep: true}, strings.NewReader("no manifest"), nil)
	assert.ErrorIs(t, err, protocol.Damaged)
	_, err = later.Known(t.Context(), []string{"../../format"})
	assert.ErrorContains(t, err, "key")
	err = later.Diff(t.Context(), protocol.DiffRequest{Old: protocol.Tree{Image: passing}, New: protocol.Tree{Image: empty}}, visit, nil)
	assert.ErrorIs(t, err, protocol.NotFound)
}

// rootOf is the manifest of a root filesystem with empty files.
func rootOf(t *testing.T, names ...string) io.Reader {
	t.Helper()
	var exported, list bytes.Buffer
	w := tar.NewWriter(&exported)
	for _, name := range names {
		assert.NilError(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg}))
	}
	assert.NilError(t, w.Close())
	assert.NilError(t, changes.FromTar(&exported, &list))
	return &list
}
