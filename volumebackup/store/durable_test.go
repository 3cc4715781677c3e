//go:build linux

package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// syncLog records which paths were synced since they were last written.
type syncLog struct {
	synced  map[string]bool
	publish func(draft string) // called before a draft becomes a snapshot
}

func (l *syncLog) note(op, path string) error {
	info, err := os.Stat(path)
	switch {
	case op == "sync":
		l.synced[path] = true
	case op == "rename" && err == nil && info.IsDir():
		l.publish(path)
		l.synced[filepath.Dir(path)] = false
	case op == "write":
		l.synced[path] = false
	default:
		l.synced[filepath.Dir(path)] = false
	}
	return nil
}

// Everything of a snapshot is durable before it becomes visible, and its name before Publish returns.
func TestPublishSyncsFirst(t *testing.T) {
	l := &syncLog{synced: map[string]bool{}}
	var files []string
	l.publish = func(draft string) {
		entries, err := os.ReadDir(draft)
		assert.NilError(t, err)
		assert.Assert(t, l.synced[draft], "the draft's directory is not synced")
		for _, entry := range entries {
			files = append(files, entry.Name())
			assert.Check(t, l.synced[filepath.Join(draft, entry.Name())], "%s is not synced", entry.Name())
		}
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	assert.NilError(t, err)
	s, err := OpenFaulty(root, l.note)
	assert.NilError(t, err)
	d, err := s.Begin(t.Context(), "20260102-030405-aaaaaa")
	assert.NilError(t, err)
	_, err = d.Attach("note", strings.NewReader("text"))
	assert.NilError(t, err)
	var piece manifest.Piece
	_, err = d.Pack(0).Add("file", false, &piece, manifest.Timestamp{}, manifest.Raw, bytes.Repeat([]byte{1}, 500))
	assert.NilError(t, err)
	_, err = d.WriteManifest(0, func(w *manifest.Writer) error { return w.Append(&manifest.Entry{Kind: manifest.Directory}) })
	assert.NilError(t, err)
	d.Describe(origin())
	d.Record(map[string]string{"k": "v"})
	_, err = d.Publish(map[int]string{0: "vol"})
	assert.NilError(t, err)
	assert.Assert(t, l.synced[filepath.Join(root, "snapshots")], "the new name is not synced")
	assert.Assert(t, len(files) >= 5, "%q", files) // pack, manifest, record, origin, attachments
	assert.NilError(t, d.Discard())
}
