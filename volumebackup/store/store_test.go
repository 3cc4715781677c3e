//go:build linux

package store

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

func TestPackIsATar(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pack.tar")
	w := &PackWriter{path: path, disk: &disk{}, id: 1, name: "id/7"}
	names := []string{"short", strings.Repeat("x", 100), strings.Repeat("y", 101), "dir/" + strings.Repeat("z", 5000), "\xff\n"}
	for i, name := range names {
		_, err := w.Add(name, i%2 == 0, &manifest.Piece{Offset: int64(i)}, manifest.Timestamp{Sec: int64(i)}, manifest.Codec(i%2), bytes.Repeat([]byte{byte(i)}, i*500))
		assert.NilError(t, err)
	}
	_, err := w.finish()
	assert.NilError(t, err)
	content, err := os.ReadFile(path)
	assert.NilError(t, err)
	r := tar.NewReader(bytes.NewReader(content))
	var members []member
	assert.NilError(t, walkMembers(bytes.NewReader(content), int64(len(content)), func(m member) error {
		members = append(members, m)
		return nil
	}))
	assert.Equal(t, len(members), len(names))
	h, err := r.Next()
	assert.NilError(t, err)
	assert.Equal(t, h.PAXRecords["comment"], fmt.Sprintf("cua-pack id/7 %020d", len(content)))
	for i, name := range names {
		if i%2 != 0 {
			name += "@" + string(rune('0'+i)) + ".zst"
		}
		h, err := r.Next()
		assert.NilError(t, err)
		assert.Equal(t, h.Name, name)
		assert.Equal(t, h.ModTime.Unix(), int64(i))
		data, err := io.ReadAll(r)
		assert.NilError(t, err)
		assert.DeepEqual(t, data, bytes.Repeat([]byte{byte(i)}, i*500))
		assert.Equal(t, members[i].name, name)
		assert.DeepEqual(t, content[members[i].data:][:members[i].size], data)
		assert.Equal(t, members[i].data-members[i].start, memberLength(len(name)))
	}
	_, err = r.Next()
	assert.ErrorIs(t, err, io.EOF)
}

func TestDeadRangesKeepWhatIsLive(t *testing.T) {
	pack := make([]byte, packHeader)
	var data []int64
	for i := range 20 {
		pack = appendMember(pack, strings.Repeat("n", 1+i*15), 1000, 0)
		data = append(data, int64(len(pack)))
		inner := appendMember(nil, "a header inside of data", 1<<30, 0)
		pack = append(pack, append(inner, make([]byte, 1024-len(inner))...)...)
	}
	pack = append(pack, make([]byte, tarEnd)...)
	for _, live := range [][]int64{nil, data, data[:1], data[19:], {data[3], data[4], data[17]}} {
		content := slices.Clone(pack)
		for range 2 { // the second time there is nothing left to free
			dead, err := deadRanges(bytes.NewReader(content), int64(len(content)), live)
			assert.NilError(t, err)
			for _, d := range dead {
				clear(content[d.Offset:][:d.Length])
			}
		}
		again, err := deadRanges(bytes.NewReader(content), int64(len(content)), live)
		assert.NilError(t, err)
		assert.Equal(t, len(again), 0)
		var left []int64
		assert.NilError(t, walkMembers(bytes.NewReader(content), int64(len(content)), func(m member) error {
			left = append(left, m.data)
			return nil
		}))
		assert.DeepEqual(t, left, live)
	}
	// Cut short anywhere, it can be done again.
	live := []int64{data[7]}
	dead, err := deadRanges(bytes.NewReader(pack), int64(len(pack)), live)
	assert.NilError(t, err)
	for at := dead[0].Offset; at < dead[0].Offset+dead[0].Length; at += tarBlock {
		content := slices.Clone(pack)
		clear(content[dead[0].Offset:at])
		_, err := deadRanges(bytes.NewReader(content), int64(len(content)), live)
		assert.NilError(t, err, "%d", at)
	}
}

func TestNewerStoreIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	assert.NilError(t, err)
	assert.NilError(t, s.Close())
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "format"), []byte("cua-store 2\n"), 0o600))
	_, err = Open(dir)
	var version *VersionError
	assert.Assert(t, errors.As(err, &version), "%v", err)
	assert.ErrorContains(t, err, `"cua-store 2"`)
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "format"), []byte("something else"), 0o600))
	_, err = Open(dir)
	assert.Assert(t, errdefs.IsDataLoss(err), "%v", err)
}

func TestRemovalWaitsForOthers(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	d, err := s.Begin(t.Context(), "id")
	assert.NilError(t, err)
	s.SetPatience(Patience{Wait: 30 * time.Millisecond})
	_, err = s.Remove(t.Context(), Removal{})
	assert.Assert(t, errdefs.IsConflict(err), "%v", err)
	s.SetPatience(Patience{Wait: time.Minute})
	other, err := s.Begin(t.Context(), "other") // several at once are fine
	assert.NilError(t, err)
	assert.NilError(t, other.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Remove(ctx, Removal{})
		done <- err
	}()
	cancel()
	assert.ErrorIs(t, <-done, context.Canceled)
	assert.NilError(t, d.Discard())
	_, err = s.Remove(t.Context(), Removal{})
	assert.NilError(t, err)
}

// Who captures or restores does not wait for a removal for longer than it may, and
// tells that it waits.
func TestNobodyWaitsForTheStoreWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	assert.NilError(t, err)
	removing, err := os.OpenFile(filepath.Join(dir, "format"), os.O_RDWR, 0)
	assert.NilError(t, err)
	assert.NilError(t, unix.Flock(int(removing.Fd()), unix.LOCK_EX))
	for wait, tells := range map[time.Duration]int{0: 0, 50 * time.Millisecond: 1} {
		told := 0
		s.SetPatience(Patience{Wait: wait, Waiting: func() { told++ }})
		_, err = s.Begin(t.Context(), "id")
		assert.ErrorContains(t, err, "another operation uses it")
		assert.Assert(t, errdefs.IsConflict(err), "%v", err)
		assert.Equal(t, told, tells)
	}
	s.SetPatience(Patience{Wait: time.Minute, Waiting: func() { assert.Check(t, removing.Close()) }})
	d, err := s.Begin(t.Context(), "id")
	assert.NilError(t, err)
	assert.NilError(t, d.Discard())
}

func TestNamesAreChecked(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	for _, bad := range []string{"", ".", "..", "a/b", "../x", ".hidden", "a\x00", strings.Repeat("a", 300), "a b"} {
		_, err := s.Begin(t.Context(), bad)
		assert.Assert(t, errdefs.IsInvalidArgument(err), "%q: %v", bad, err)
		_, err = s.OpenManifest(bad, 0)
		assert.Assert(t, errdefs.IsInvalidArgument(err), "%q: %v", bad, err)
		head, err := s.OpenHead(bad)
		assert.Assert(t, head == nil && err == nil, "%q: %v", bad, err)
		assert.Equal(t, filepath.Dir(filepath.Dir(s.headPath(bad))), s.path("volumes"))
		_, err = s.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: bad}}})
		assert.Assert(t, errdefs.IsInvalidArgument(err), "%q: %v", bad, err)
		assert.Assert(t, manifest.CheckPackName(bad+"/0") != nil)
	}
	for _, bad := range []string{"a", "a/", "a/-1", "a/01", "a/10000", "a/0/1", "/0"} {
		assert.Assert(t, manifest.CheckPackName(bad) != nil, bad)
	}
	_, err = s.OpenManifest("id", 0)
	assert.Assert(t, errdefs.IsNotFound(err), "%v", err)
}
