//go:build linux

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// publishRecorded makes a snapshot with a record, and returns what its image claims of it.
func publishRecorded(t *testing.T, s *Store, id string, record map[string]string) (Claim, error) {
	t.Helper()
	d, err := s.Begin(t.Context(), id)
	assert.NilError(t, err)
	defer func() { assert.NilError(t, d.Discard()) }()
	summary, err := d.WriteManifest(0, func(w *manifest.Writer) error { return w.Append(&manifest.Entry{Kind: manifest.Directory}) })
	assert.NilError(t, err)
	o := origin()
	d.Describe(o)
	d.Record(record)
	_, err = d.Publish(map[int]string{0: "vol"})
	return Claim{Snapshot: id, Container: o.Container, ContainerName: o.ContainerName, Roots: map[int]manifest.Sum{0: summary.Root}}, err
}

// lost lists what is lost at some time.
func lost(t *testing.T, s *Store, now time.Time, seen Seen) []Lost {
	t.Helper()
	var all []Lost
	assert.NilError(t, s.EachLost(t.Context(), seen, now, func(l Lost) { all = append(all, l) }))
	return all
}

func TestALostSnapshotHasItsRecord(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	record := map[string]string{"id": "a", "odd": "\x01<>&\u2028ü"}
	claim, err := publishRecorded(t, s, "a", record)
	assert.NilError(t, err)
	_, err = publishRecorded(t, s, "b", nil)
	assert.NilError(t, err)
	here := Seen{Engine: "engine", ImageStore: "overlay2"}
	at := published.Add(day)

	none := here
	none.Snapshots = []string{"a", "b"}
	assert.Equal(t, len(lost(t, s, at, none)), 0)
	assert.Equal(t, len(lost(t, s, at, Seen{Engine: "other", ImageStore: "overlay2"})), 0)
	assert.DeepEqual(t, lost(t, s, at, here), []Lost{{Snapshot: "a", Since: at, Labels: record}, {Snapshot: "b", Since: at}})
	assert.DeepEqual(t, lost(t, s, at.Add(day), here), []Lost{{Snapshot: "a", Since: at, Labels: record}, {Snapshot: "b", Since: at}})

	other := map[string]string{"id": "a", "name": "new"}
	assert.NilError(t, s.ReplaceRecord(t.Context(), claim, other))
	assert.DeepEqual(t, lost(t, s, at, here)[0].Labels, other)
	stranger := claim
	stranger.Container = strings.Repeat("cd", 32)
	assert.Assert(t, errdefs.IsConflict(s.ReplaceRecord(t.Context(), stranger, record)))
	unknown := claim
	unknown.Snapshot = "c"
	assert.Assert(t, errdefs.IsNotFound(s.ReplaceRecord(t.Context(), unknown, record)))
	assert.Assert(t, errdefs.IsInvalidArgument(s.ReplaceRecord(t.Context(), Claim{Snapshot: "../a"}, record)))
	assert.DeepEqual(t, lost(t, s, at, here)[0].Labels, other)

	assert.DeepEqual(t, look(t, s, at.Add(7*day), here), []string{"a", "b"})
	assert.Equal(t, len(lost(t, s, at.Add(7*day), here)), 0)
	left, err := os.ReadDir(s.path("snapshots"))
	assert.NilError(t, err)
	assert.Equal(t, len(left), 0)
}

// TestARemovalSaysWhatItMissesFirst expects that each loss is told of once.
func TestARemovalSaysWhatItMissesFirst(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	_, err = publishRecorded(t, s, "a", map[string]string{"id": "a"})
	assert.NilError(t, err)
	seen := Seen{Engine: "engine", ImageStore: "overlay2"}
	for _, step := range []struct {
		retention time.Duration
		missed    []string
		removed   []string
	}{
		{7 * day, []string{"a"}, nil},
		{7 * day, nil, nil},
		{time.Hour, nil, []string{"a"}},
	} {
		removed, err := s.Remove(t.Context(), Removal{Seen: &seen, Now: published.Add(2 * day), Retention: step.retention})
		assert.NilError(t, err)
		if step.retention == time.Hour {
			removed, err = s.Remove(t.Context(), Removal{Seen: &seen, Now: published.Add(3 * day), Retention: step.retention})
			assert.NilError(t, err)
		}
		assert.DeepEqual(t, removed.Missed, step.missed)
		assert.DeepEqual(t, removed.Snapshots, step.removed)
	}
}

// TestPacksThatOthersNeedAreNotLost has only a pack left of a snapshot that was removed.
func TestPacksThatOthersNeedAreNotLost(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	pieces := publish(t, s, "first", texts(1))
	publish(t, s, "second", nil, pieces...)
	removed, err := s.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: "first"}}})
	assert.NilError(t, err)
	assert.DeepEqual(t, removed.Snapshots, []string{"first"})
	assert.NilError(t, os.WriteFile(s.path("snapshots", "first", originFile), []byte(`{"engine":"engine","image_store":"overlay2"}`), 0o600))
	assert.Equal(t, len(lost(t, s, published, Seen{Engine: "engine", ImageStore: "overlay2"})), 0)
}

func TestARecordIsBounded(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	long := map[string]string{"a": strings.Repeat("x", MaxRecord)}
	claim, err := publishRecorded(t, s, "a", long)
	assert.Assert(t, errdefs.IsInvalidArgument(err))
	claim.Snapshot = "b"
	_, err = publishRecorded(t, s, "b", map[string]string{"id": "b"})
	assert.NilError(t, err)
	assert.Assert(t, errdefs.IsInvalidArgument(s.ReplaceRecord(t.Context(), claim, long)))
	content, err := json.Marshal(long)
	assert.NilError(t, err)
	assert.NilError(t, os.WriteFile(s.path("snapshots", "b", recordFile), content, 0o600))
	found := lost(t, s, published, Seen{Engine: "engine", ImageStore: "overlay2"})
	assert.Equal(t, len(found), 1)
	assert.Assert(t, found[0].Labels == nil)
}

// TestARecordIsPublishedOrNothingIs fails each change on disk of a record.
func TestARecordIsPublishedOrNothingIs(t *testing.T) {
	for _, fails := range []string{"create", "write", "sync"} {
		dir := t.TempDir()
		s, err := OpenFaulty(dir, func(op, path string) error {
			if op == fails && strings.HasSuffix(path, "/"+recordFile) {
				return unix.ENOSPC
			}
			return nil
		})
		assert.NilError(t, err)
		_, err = publishRecorded(t, s, "a", map[string]string{"id": "a"})
		assert.Assert(t, errors.Is(err, unix.ENOSPC), "%s: %v", fails, err)
		ids, err := s.Snapshots()
		assert.NilError(t, err)
		assert.Equal(t, len(ids), 0)
	}
}

func TestOthersOfAContainer(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	publishFrom(t, s, "a", origin())
	assert.Assert(t, !s.HasOthersOf(origin()), "only the new one")
	other := origin()
	other.Container = strings.Repeat("cd", 32)
	publishFrom(t, s, "b", other)
	assert.Assert(t, !s.HasOthersOf(origin()))
	publishFrom(t, s, "c", origin())
	assert.Assert(t, s.HasOthersOf(origin()))
	elsewhere := origin()
	elsewhere.Engine = "another"
	assert.Assert(t, !s.HasOthersOf(elsewhere))
}

// FuzzRecord has a store read a record of somebody else's making.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"cua.snapshot.id":"20260314-092653-58979a"}`))
	f.Add([]byte(`{"a":7}`))
	f.Add([]byte(`null`))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, content []byte) {
		labels := decodeRecord(content)
		if labels == nil {
			return
		}
		again, err := encodeRecord(labels)
		if errdefs.IsInvalidArgument(err) { // escaping has made it longer
			return
		}
		assert.NilError(t, err)
		assert.DeepEqual(t, decodeRecord(again), labels)
	})
}

// Any bit of a record that flips is found.
func TestARecordIsVerified(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	record := map[string]string{"id": "a", "odd": "\x01<>&\u2028ü"}
	_, err = publishRecorded(t, s, "a", record)
	assert.NilError(t, err)
	name := s.path("snapshots", "a", recordFile)
	content, err := os.ReadFile(name)
	assert.NilError(t, err)
	sum := sha256.Sum256(content)
	want := hex.EncodeToString(sum[:])
	assert.NilError(t, s.VerifyRecord("a", want))
	assert.NilError(t, s.VerifyRecord("b", want)) // not in the store
	for bit := range len(content) * 8 {
		content[bit/8] ^= 1 << (bit % 8)
		assert.NilError(t, os.WriteFile(name, content, 0o600))
		assert.Assert(t, errdefs.IsDataLoss(s.VerifyRecord("a", want)), "bit %d", bit)
		content[bit/8] ^= 1 << (bit % 8)
	}
	assert.NilError(t, os.Remove(name))
	assert.Assert(t, errdefs.IsDataLoss(s.VerifyRecord("a", want)))
}
