//go:build linux

package store

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// content is a piece that is not in the store yet.
func content(text string) manifest.Piece {
	return manifest.Piece{Length: uint32(len(text)), Sum: sha256.Sum256([]byte(text))}
}

// publish makes a snapshot of volume vol: a file for each text, and one for each piece that is there already.
func publish(t *testing.T, s *Store, id string, texts []string, known ...manifest.Piece) []manifest.Piece {
	t.Helper()
	d, err := s.Begin(t.Context(), id)
	assert.NilError(t, err)
	defer func() { assert.NilError(t, d.Discard()) }()
	pieces := slices.Clone(known)
	for _, text := range texts {
		p := content(text)
		p.At, err = d.Pack(0).Add("file", true, &p, manifest.Timestamp{}, manifest.Raw, []byte(text))
		assert.NilError(t, err)
		pieces = append(pieces, p)
	}
	_, err = d.WriteManifest(0, func(w *manifest.Writer) error {
		assert.NilError(t, w.Append(&manifest.Entry{Kind: manifest.Directory}))
		for i, p := range pieces {
			e := &manifest.Entry{Path: string(rune('a' + i)), Kind: manifest.Regular, Size: int64(p.Length), Pieces: []manifest.Piece{p}}
			assert.NilError(t, w.Append(e))
		}
		return nil
	})
	assert.NilError(t, err)
	_, err = d.Publish(map[int]string{0: "vol"})
	assert.NilError(t, err)
	return pieces
}

func (s *Store) check(t *testing.T, ids ...string) {
	t.Helper()
	v := s.NewVerification(func(d *DamagedError) { t.Error(d) })
	for _, id := range ids {
		assert.NilError(t, v.Archive(t.Context(), id, 0, nil))
	}
}

func texts(n int) []string {
	var all []string
	for i := range n {
		all = append(all, strings.Repeat(string(rune('A'+i)), 10_000))
	}
	return all
}

// TestRemovalInAFullStore has not a block left for anything: removing something must be possible all the same.
func TestRemovalInAFullStore(t *testing.T) {
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT} {
		dir := t.TempDir()
		s, err := Open(dir)
		assert.NilError(t, err)
		first := publish(t, s, "first", texts(10))
		publish(t, s, "second", nil, first[3])
		assert.NilError(t, s.WriteHead("other", func(w *manifest.Writer) error { // a head that has to be trimmed
			r, err := s.OpenManifest("first", 0)
			assert.NilError(t, err)
			defer r.Close()
			for {
				e, err := r.Next()
				if errors.Is(err, io.EOF) {
					return nil
				}
				assert.NilError(t, err)
				assert.NilError(t, w.Append(e))
			}
		}))
		tight, err := OpenFaulty(dir, func(op, _ string) error {
			if op == "create" || op == "write" {
				return full
			}
			return nil
		})
		assert.NilError(t, err)
		removed, err := tight.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: "first"}}})
		assert.NilError(t, err)
		assert.Assert(t, removed.Freed > 50_000, "%d", removed.Freed)
		assert.NilError(t, tight.Close())
		tight, err = OpenFaulty(dir, nil)
		assert.NilError(t, err)
		tight.check(t, "second")
		head, err := tight.OpenHead("other")
		assert.NilError(t, err)
		assert.Assert(t, head == nil)
		left, err := os.ReadDir(filepath.Join(dir, "tmp"))
		assert.NilError(t, err)
		assert.Equal(t, len(left), 0)
		publish(t, tight, "third", texts(2))
		tight.check(t, "third")
	}
}

// TestFullDiskHalfway lets the note be begun, but not be written.
func TestFullDiskHalfway(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	assert.NilError(t, err)
	publish(t, s, "first", texts(10))
	tight, err := OpenFaulty(dir, func(op, path string) error {
		if op == "write" {
			return unix.ENOSPC
		}
		if op == "remove" && strings.HasSuffix(path, ".tar") {
			left, err := os.ReadDir(filepath.Join(dir, "tmp"))
			assert.NilError(t, err)
			assert.Equal(t, len(left), 0, "what could not be written takes no room")
		}
		return nil
	})
	assert.NilError(t, err)
	_, err = tight.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: "first"}}})
	assert.NilError(t, err)
	packs, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "*"))
	assert.NilError(t, err)
	assert.Equal(t, len(packs), 0)
}

// TestHeadsAreDurableBeforeAnythingIsFreed watches the order in which a removal changes the disk.
func TestHeadsAreDurableBeforeAnythingIsFreed(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	assert.NilError(t, err)
	first := publish(t, s, "first", texts(10))
	publish(t, s, "second", nil, first[3]) // its head is in place, but nothing has synced that
	synced, freed := false, 0
	watched, err := OpenFaulty(dir, func(op, path string) error {
		switch {
		case op == "sync" && path == filepath.Join(dir, "volumes", "vol"):
			synced = true
		case op == "punch" || op == "remove" && strings.HasSuffix(path, ".tar"):
			assert.Assert(t, synced, "%s %s", op, path)
			freed++
		}
		return nil
	})
	assert.NilError(t, err)
	_, err = watched.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: "first"}}})
	assert.NilError(t, err)
	assert.Assert(t, freed > 0)
}

// TestRemovalOfADamagedSnapshotFreesWhatItHeld removes a snapshot whose manifest, which
// names the older packs that it needs, can be opened no more.
func TestRemovalOfADamagedSnapshotFreesWhatItHeld(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	assert.NilError(t, err)
	first := publish(t, s, "first", texts(4))
	publish(t, s, "second", texts(2), first[1])
	publish(t, s, "third", []string{"third"})
	remove := func(id string) {
		t.Helper()
		_, err := s.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: id}}})
		assert.NilError(t, err)
	}
	remove("first")
	assert.NilError(t, os.Truncate(filepath.Join(dir, "snapshots", "second", "0.man"), 10))
	remove("second")
	packs, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "*.tar"))
	assert.NilError(t, err)
	assert.DeepEqual(t, packs, []string{filepath.Join(dir, "snapshots", "third", "0.tar")})
	s.check(t, "third")
}

// TestStoreWithoutLinks is on a filesystem that cannot link, and on one that cannot rename without replacing either.
func TestStoreWithoutLinks(t *testing.T) {
	for name, fails := range map[string]map[string]error{
		"EPERM":     {"link": unix.EPERM},
		"ENOTSUP":   {"link": unix.ENOTSUP},
		"no rename": {"link": unix.EPERM, "move": unix.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := OpenFaulty(dir, func(op, _ string) error { return fails[op] })
			assert.NilError(t, err)
			publish(t, s, "id", texts(1))
			head, err := s.OpenHead("vol")
			assert.NilError(t, err)
			assert.Assert(t, head != nil)
			head.Close()
			files, err := filepath.Glob(filepath.Join(dir, "format*"))
			assert.NilError(t, err)
			assert.DeepEqual(t, files, []string{filepath.Join(dir, "format")})
			s, err = Open(dir)
			assert.NilError(t, err)
			s.check(t, "id")
		})
	}
}

// TestFormatThatWasCutShort is what a crash leaves where a file cannot get its name when it is whole.
func TestFormatThatWasCutShort(t *testing.T) {
	dir := t.TempDir()
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "format"), nil, 0o600))
	s, err := Open(dir)
	assert.NilError(t, err)
	publish(t, s, "id", texts(1))
	line, err := os.ReadFile(filepath.Join(dir, "format"))
	assert.NilError(t, err)
	assert.Equal(t, string(line), formatLine+"\n")
}

// TestLocksAloneAreOpenForWriting is what NFS asks for; local filesystems do not mind.
func TestLocksAloneAreOpenForWriting(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	for how, want := range map[int]int{unix.LOCK_EX: unix.O_RDWR, unix.LOCK_SH: unix.O_RDONLY} {
		f, err := s.openLock(how)
		assert.NilError(t, err)
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		assert.NilError(t, err)
		assert.Equal(t, flags&unix.O_ACCMODE, want)
		assert.NilError(t, f.Close())
	}
}

// TestHostileFilesAreNotOpened puts what no program of ours makes into a store.
func TestHostileFilesAreNotOpened(t *testing.T) {
	elsewhere := t.TempDir()
	other, err := Open(elsewhere)
	assert.NilError(t, err)
	publish(t, other, "id", texts(1))
	for name, test := range map[string]struct {
		path string // in the store
		make func(path string) error
		open func(s *Store) error
	}{
		"format is a FIFO":   {"format", fifo, nil},
		"format is a link":   {"format", linkTo(elsewhere, "format"), nil},
		"manifest is a FIFO": {"snapshots/id/0.man", fifo, openManifest},
		"manifest is a link": {"snapshots/id/0.man", linkTo(elsewhere, "snapshots/id/0.man"), openManifest},
		"snapshot is a link": {"snapshots/id", linkTo(elsewhere, "snapshots/id"), openManifest},
		"head is a FIFO":     {"volumes/vol/head", fifo, openHead},
		"head is a link":     {"volumes/vol/head", linkTo(elsewhere, "volumes/vol/head"), openHead},
		"volume is a link":   {"volumes/vol", linkTo(elsewhere, "volumes/vol"), openHead},
		"pack is a FIFO":     {"snapshots/id/0.tar", fifo, readPack},
		"pack is a link":     {"snapshots/id/0.tar", linkTo(elsewhere, "snapshots/id/0.tar"), readPack},
		"pack to be punched": {"snapshots/id/0.tar", linkTo(elsewhere, "snapshots/id/0.tar"), func(s *Store) error {
			return s.freeDead(s.path("snapshots/id/0.tar"), []int64{packHeader + tarBlock})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir)
			assert.NilError(t, err)
			publish(t, s, "id", texts(1))
			path := filepath.Join(dir, test.path)
			assert.NilError(t, os.RemoveAll(path))
			assert.NilError(t, test.make(path))
			if test.open == nil {
				_, err = Open(dir)
			} else {
				err = test.open(s)
			}
			assert.Assert(t, err != nil)
			ids, err := s.Snapshots()
			assert.NilError(t, err)
			assert.Assert(t, len(ids) <= 1)
			_, _ = s.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: "id"}}})
			_ = s.DropHead("vol")
			other.check(t, "id")
			head, err := other.OpenHead("vol")
			assert.NilError(t, err)
			assert.Assert(t, head != nil, "nothing outside is touched")
			head.Close()
		})
	}
}

func fifo(path string) error { return unix.Mkfifo(path, 0o600) }

func linkTo(dir, name string) func(string) error {
	return func(path string) error { return os.Symlink(filepath.Join(dir, name), path) }
}

func openManifest(s *Store) error {
	_, err := s.OpenManifest("id", 0)
	return err
}

func openHead(s *Store) error {
	_, err := s.OpenHead("vol")
	return err
}

func readPack(s *Store) error {
	_, err := s.files.open(s.packs.ID("id/0"))
	return err
}
