//go:build linux

package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// packDamages are ways in which a pack can stop being what it was without a byte of its content being read.
var packDamages = map[string]func(t *testing.T, pack, other string){
	"missing":   func(t *testing.T, pack, _ string) { assert.NilError(t, os.Remove(pack)) },
	"cut short": func(t *testing.T, pack, _ string) { assert.NilError(t, os.Truncate(pack, 5*tarBlock)) },
	"empty":     func(t *testing.T, pack, _ string) { assert.NilError(t, os.Truncate(pack, 0)) },
	"too long":  func(t *testing.T, pack, _ string) { assert.NilError(t, os.Truncate(pack, 1<<20)) },
	"another pack": func(t *testing.T, pack, other string) {
		content, err := os.ReadFile(other)
		assert.NilError(t, err)
		assert.NilError(t, os.WriteFile(pack, content, 0o600))
	},
	"no pack": func(t *testing.T, pack, _ string) {
		info, err := os.Stat(pack)
		assert.NilError(t, err)
		assert.NilError(t, os.WriteFile(pack, []byte(strings.Repeat("x", int(info.Size()))), 0o600))
	},
	"a symlink to the same": func(t *testing.T, pack, _ string) {
		moved := filepath.Join(t.TempDir(), "moved")
		content, err := os.ReadFile(pack)
		assert.NilError(t, err)
		assert.NilError(t, os.WriteFile(moved, content, 0o600))
		assert.NilError(t, os.Remove(pack))
		assert.NilError(t, os.Symlink(moved, pack))
	},
	"a directory": func(t *testing.T, pack, _ string) {
		assert.NilError(t, os.Remove(pack))
		assert.NilError(t, os.Mkdir(pack, 0o700))
	},
	"a FIFO": func(t *testing.T, pack, _ string) {
		assert.NilError(t, os.Remove(pack))
		assert.NilError(t, unix.Mkfifo(pack, 0o600))
	},
	"a device": func(t *testing.T, pack, _ string) {
		assert.NilError(t, os.Remove(pack))
		assert.NilError(t, unix.Mknod(pack, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))))
	},
}

// TestHeadForgetsLostPacks expects that what is in a pack that is not what it was counts as not stored,
// and that nothing that refers to it is published.
func TestHeadForgetsLostPacks(t *testing.T) {
	for name, damage := range packDamages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir)
			assert.NilError(t, err)
			first := publish(t, s, "first", texts(4))
			other := publish(t, s, "other", []string{"another", strings.Repeat("z", 30_000)})
			publish(t, s, "last", nil, first[0], other[0])
			d, err := s.Begin(t.Context(), "late")
			assert.NilError(t, err)
			_, err = d.WriteManifest(0, func(w *manifest.Writer) error {
				assert.NilError(t, w.Append(&manifest.Entry{Kind: manifest.Directory}))
				return w.Append(&manifest.Entry{Path: "a", Kind: manifest.Regular, Size: int64(first[1].Length), Pieces: first[1:2]})
			})
			assert.NilError(t, err)
			damage(t, s.packPath(first[0].At.Pack), s.packPath(other[0].At.Pack))
			_, err = d.Publish(nil)
			var damaged *DamagedError
			assert.Assert(t, errors.As(err, &damaged), "%v", err)
			assert.Equal(t, damaged.Pack, "snapshots/first/0.tar")
			assert.NilError(t, d.Discard())
			s, err = Open(dir) // what was looked at before is forgotten
			assert.NilError(t, err)
			head, err := s.OpenHead("vol")
			assert.NilError(t, err)
			defer head.Close()
			assert.Equal(t, len(head.LostPacks()), 1)
			assert.Equal(t, head.LostPacks()[0].Pack, "snapshots/first/0.tar")
			known := 0
			assert.NilError(t, head.Each(func(e *manifest.Entry) error {
				for _, p := range e.Pieces {
					if p.At.Pack != 0 {
						known++
						assert.Equal(t, p.Sum, other[0].Sum)
						assert.Assert(t, !e.Cached.Unsettled)
						continue
					}
					assert.Assert(t, e.Cached.Unsettled)
				}
				return nil
			}))
			assert.Equal(t, known, 1)
		})
	}
}

// TestFreeingKeepsTheIdentity removes what is in a pack, piece by piece.
func TestFreeingKeepsTheIdentity(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	first := publish(t, s, "first", texts(10))
	publish(t, s, "second", nil, first[3])
	removed, err := s.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: "first"}}})
	assert.NilError(t, err)
	assert.Assert(t, removed.Freed > 50_000, "%d", removed.Freed)
	assert.NilError(t, s.checkPack(first[3].At.Pack))
	s.check(t, "second")
}

// TestVerifyLooksAtThePackItself flips a bit in what a pack begins with, which no piece has.
func TestVerifyLooksAtThePackItself(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	pieces := publish(t, s, "first", texts(2))
	f, err := os.OpenFile(s.packPath(pieces[0].At.Pack), os.O_RDWR, 0)
	assert.NilError(t, err)
	_, err = f.WriteAt([]byte("x"), tarBlock+20)
	assert.NilError(t, err)
	assert.NilError(t, f.Close())
	var found []*DamagedError
	v := s.NewVerification(func(d *DamagedError) { found = append(found, d) })
	assert.NilError(t, v.Archive(t.Context(), "first", 0, nil))
	assert.Equal(t, len(found), 1, "%v", found)
	assert.Equal(t, found[0].Pack, "snapshots/first/0.tar")
}

// TestTarListsAPack has the programs read a pack that people have.
func TestTarListsAPack(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	pieces := publish(t, s, "first", []string{"some text"})
	listed, err := exec.CommandContext(t.Context(), "tar", "-xOf", s.packPath(pieces[0].At.Pack)).CombinedOutput()
	assert.NilError(t, err, "%s", listed)
	assert.Equal(t, string(listed), "some text")
}

// BenchmarkCheckPack measures what a pack of an earlier snapshot costs a backup.
func BenchmarkCheckPack(b *testing.B) {
	s, err := Open(b.TempDir())
	assert.NilError(b, err)
	d, err := s.Begin(b.Context(), "id")
	assert.NilError(b, err)
	p := content("text")
	_, err = d.Pack(0).Add("file", true, &p, manifest.Timestamp{}, manifest.Raw, []byte("text"))
	assert.NilError(b, err)
	_, err = d.WriteManifest(0, func(w *manifest.Writer) error { return w.Append(&manifest.Entry{Kind: manifest.Directory}) })
	assert.NilError(b, err)
	_, err = d.Publish(nil)
	assert.NilError(b, err)
	for b.Loop() {
		assert.NilError(b, s.checkPack(s.packs.ID("id/0")))
	}
}
