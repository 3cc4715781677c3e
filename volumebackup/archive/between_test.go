//go:build linux

package archive

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// passWith makes a live pass in which something happens after the walk has seen
// everything and before any of it is read.
func (w *world) passWith(b *Backup, between func()) {
	w.t.Helper()
	ctx := w.t.Context()
	v := b.volumes[0]
	base, err := b.base(v, w, &Counter{})
	assert.NilError(w.t, err)
	p := b.newPass(v, Live, base, &Counter{})
	_, err = b.draft.WriteManifest(0, func(out *manifest.Writer) error {
		var batches []*batch
		assert.NilError(w.t, p.walk(ctx, func(b *batch) error {
			batches = append(batches, b)
			return nil
		}))
		between()
		inOrder := make(chan *batch, len(batches))
		for _, b := range batches {
			if b.reads {
				assert.NilError(w.t, newReader(p).read(ctx, b))
			}
			inOrder <- b
		}
		close(inOrder)
		return p.write(ctx, inOrder, out)
	})
	p.base.close()
	assert.NilError(w.t, err)
}

// TestChangesBetweenWalkAndReading expects that the last pass, with nobody writing, makes
// the archive what the volume is, however the first one was disturbed.
func TestChangesBetweenWalkAndReading(t *testing.T) {
	for name, between := range map[string]func(w *world) error{
		"xattr": func(w *world) error { return unix.Setxattr(w.path("b"), "user.new", []byte("value"), 0) },
		"ACL": func(w *world) error {
			const one, entries = 2, "\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x07\x00\xe8\x03\x00\x00\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x07\x00\xff\xff\xff\xff\x20\x00\x04\x00\xff\xff\xff\xff"
			return unix.Setxattr(w.path("b"), "system.posix_acl_access", append([]byte{one, 0, 0, 0}, entries...), 0)
		},
		"other file, same name": func(w *world) error {
			if err := os.Remove(w.path("b")); err != nil {
				return err
			}
			return os.WriteFile(w.path("b"), []byte("other"), 0o600)
		},
		"further name goes": func(w *world) error { return os.Remove(w.path("second")) },
		"first name goes":   func(w *world) error { return os.Remove(w.path("first")) },
		"name comes":        func(w *world) error { return os.Link(w.path("b"), w.path("c")) },
		"socket comes": func(w *world) error {
			if err := os.Remove(w.path("b")); err != nil {
				return err
			}
			return unix.Mknod(w.path("b"), unix.S_IFSOCK|0o600, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("b", []byte("content"))
			assert.NilError(t, unix.Setxattr(w.path("b"), "user.old", []byte("old"), 0))
			w.write("first", []byte("two names"))
			assert.NilError(t, os.Link(w.path("first"), w.path("second")))
			b, err := w.begin("id")
			assert.NilError(t, err)
			w.passWith(b, func() {
				assert.NilError(t, between(w))
				w.settle()
			})
			_, err = b.Pass(t.Context(), Frozen, w, &Counter{})
			assert.NilError(t, err)
			want := archivetest.Describe(t, w.volume)
			_, err = b.Publish(w)
			assert.NilError(t, err)
			assert.NilError(t, b.Discard())
			w.checkRestore("id", want)
		})
	}
}

// TestLinkThatTheHeadDoesNotKnow has a file with two names of which its head knows one,
// as if the other was made while a restore wrote the head.
func TestLinkThatTheHeadDoesNotKnow(t *testing.T) {
	w := newWorld(t)
	w.write("first", []byte("two names"))
	assert.NilError(t, os.Link(w.path("first"), w.path("second")))
	w.settle()
	w.snapshot(Live)
	head, err := w.store.OpenHead("vol")
	assert.NilError(t, err)
	assert.NilError(t, w.store.WriteHead("vol", func(out *manifest.Writer) error {
		for {
			e, err := head.Next()
			if err != nil {
				return nil //nolint:nilerr // the end
			}
			if e.Kind != manifest.HardLink {
				e.Shared = false
				assert.NilError(t, out.Append(e))
			}
		}
	}))
	head.Close()
	w.checkSnapshot()
}

// snapshotAs makes a snapshot as another user.
func (w *world) snapshotAs(user int) (string, Archive) {
	w.t.Helper()
	assert.NilError(w.t, syscall.Setresuid(-1, user, -1))
	defer func() { assert.NilError(w.t, syscall.Setresuid(-1, 0, -1)) }()
	return w.snapshot()
}

// TestWhatMayNotBeReadIsReported takes root's powers away, as an engine that remaps
// users does for files of users that it does not map.
func TestWhatMayNotBeReadIsReported(t *testing.T) {
	w := newWorld(t)
	w.write("a", []byte("readable"))
	w.write("secret", []byte("small"))
	w.write("secret-large", archivetest.Random(1, 2<<20))
	assert.NilError(t, os.Link(w.path("secret"), w.path("secret-link")))
	assert.NilError(t, os.MkdirAll(w.path("closed/below"), 0o755))
	assert.NilError(t, os.MkdirAll(w.path("listed/below"), 0o755))
	for _, name := range []string{"secret", "secret-large", "closed"} {
		assert.NilError(t, os.Chmod(w.path(name), 0))
	}
	assert.NilError(t, os.Chmod(w.path("listed"), 0o444))
	const nobody = 65534
	for _, dir := range []string{w.dir, w.volume} {
		assert.NilError(t, os.Chmod(filepath.Dir(dir), 0o755))
		assert.NilError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, nobody, nobody)
		}))
	}
	id, archive := w.snapshotAs(nobody)
	assert.Equal(t, archive.Skipped, int64(5))
	assert.DeepEqual(t, w.warnings, []string{
		`0 "closed": what is in it is left out: permission denied`,
		`0 "listed/below": left out: permission denied`,
		`0 "secret": left out: permission denied`,
		`0 "secret-large": left out: permission denied`,
		`0 "secret-link": left out: permission denied`,
	})
	w.warnings = nil
	target := filepath.Join(w.dir, "target")
	assert.NilError(t, os.Mkdir(target, 0o755))
	w.restore(id, "copy", target)
	left, err := os.ReadDir(target)
	assert.NilError(t, err)
	assert.Equal(t, len(left), 3)
	content, err := os.ReadFile(filepath.Join(target, "a"))
	assert.NilError(t, err)
	assert.Equal(t, string(content), "readable")
	w.noWarnings()
}
