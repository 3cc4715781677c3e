//go:build linux

package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

const day = 24 * time.Hour

// published is when the snapshots of these tests were.
var published = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

func origin() Origin {
	return Origin{Engine: "engine", ImageStore: "overlay2", Container: strings.Repeat("ab", 32), ContainerName: "web", Published: published}
}

// publishFrom makes a snapshot that is described, and returns what its image claims of it.
func publishFrom(t *testing.T, s *Store, id string, o Origin) Claim {
	t.Helper()
	d, err := s.Begin(t.Context(), id)
	assert.NilError(t, err)
	summary, err := d.WriteManifest(0, func(w *manifest.Writer) error { return w.Append(&manifest.Entry{Kind: manifest.Directory}) })
	assert.NilError(t, err)
	d.Describe(o)
	_, err = d.Publish(map[int]string{0: "vol"})
	assert.NilError(t, err)
	return Claim{Snapshot: id, Container: o.Container, ContainerName: o.ContainerName, Roots: map[int]manifest.Sum{0: summary.Root}}
}

// look has the store told at some time which snapshots have an image, and returns what it removed.
func look(t *testing.T, s *Store, now time.Time, seen Seen) []string {
	t.Helper()
	removed, err := s.Remove(t.Context(), Removal{Seen: &seen, Now: now, Retention: 7 * day})
	assert.NilError(t, err)
	return removed.Snapshots
}

func TestArchivesOfAVanishedImageStayForAWeek(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	// The engine committed and read for hours: only when it was published counts.
	for _, id := range []string{"kept", "vanished"} {
		publishFrom(t, s, id, origin())
	}
	here := Seen{Engine: "engine", ImageStore: "overlay2", Snapshots: []string{"kept"}}
	both := Seen{Engine: "engine", ImageStore: "overlay2", Snapshots: []string{"kept", "vanished"}}
	at := published.Add(30 * day) // nobody looked for long

	assert.Equal(t, len(look(t, s, at, here)), 0, "missed for the first time")
	assert.Equal(t, len(look(t, s, at.Add(7*day-time.Minute), here)), 0)
	assert.Equal(t, len(look(t, s, at.Add(7*day), both)), 0, "it is back")
	assert.Equal(t, len(look(t, s, at.Add(8*day), here)), 0, "missed for the first time, again")
	assert.Equal(t, len(look(t, s, at.Add(14*day), here)), 0)
	assert.DeepEqual(t, look(t, s, at.Add(15*day), here), []string{"vanished"})

	ids, err := s.Snapshots()
	assert.NilError(t, err)
	assert.DeepEqual(t, ids, []string{"kept"})
	left, err := filepath.Glob(s.path("snapshots", "*"))
	assert.NilError(t, err)
	assert.Equal(t, len(left), 1)
}

func TestOnlyWhoCouldHaveSeenAnImageMissesIt(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	publishFrom(t, s, "here", origin())
	publishFrom(t, s, "nowhere", Origin{Published: published})
	for _, elsewhere := range []Seen{
		{Engine: "engine", ImageStore: "overlayfs/io.containerd.snapshotter.v1"},
		{Engine: "another", ImageStore: "overlay2"},
		{Engine: "engine"},
		{ImageStore: "overlay2"},
		{},
	} {
		for n := range 4 {
			assert.Equal(t, len(look(t, s, published.Add(time.Duration(n)*100*day), elsewhere)), 0)
		}
	}
	here := Seen{Engine: "engine", ImageStore: "overlay2"}
	assert.Equal(t, len(look(t, s, published.Add(500*day), here)), 0, "nobody who could see it has missed it before")
	assert.DeepEqual(t, look(t, s, published.Add(507*day), here), []string{"here"})
}

func TestAMissingNoteOfAWrongClockDoesNotCount(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	publishFrom(t, s, "id", origin())
	here := Seen{Engine: "engine", ImageStore: "overlay2"}
	assert.Equal(t, len(look(t, s, time.Unix(0, 0), here)), 0, "the clock was not set yet")
	assert.Equal(t, len(look(t, s, published.Add(time.Hour), here)), 0)
	assert.Equal(t, len(look(t, s, published.Add(100*365*day), here)), 1)

	publishFrom(t, s, "id", origin())
	assert.Equal(t, len(look(t, s, published.Add(100*365*day), here)), 0, "the clock was ahead")
	assert.Equal(t, len(look(t, s, published.Add(day), here)), 0)
	assert.Equal(t, len(look(t, s, published.Add(7*day), here)), 0)
	assert.Equal(t, len(look(t, s, published.Add(8*day), here)), 1)
}

func TestAFullStoreMissesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	assert.NilError(t, err)
	publishFrom(t, s, "id", origin())
	full, err := OpenFaulty(dir, func(op, _ string) error {
		if op == "create" || op == "write" {
			return unix.ENOSPC
		}
		return nil
	})
	assert.NilError(t, err)
	here := Seen{Engine: "engine", ImageStore: "overlay2"}
	assert.Equal(t, len(look(t, full, published.Add(day), here)), 0)
	assert.Equal(t, len(look(t, s, published.Add(10*day), here)), 0, "it was not noted")
	assert.Equal(t, len(look(t, s, published.Add(17*day), here)), 1)
}

func TestOnlyTheOwnerRemovesArchives(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	own := publishFrom(t, s, "id", origin())
	for name, spoil := range map[string]func(*Claim){
		"container":      func(c *Claim) { c.Container = strings.Repeat("cd", 32) },
		"no container":   func(c *Claim) { c.Container = "" },
		"container name": func(c *Claim) { c.ContainerName = "evil" },
		"root":           func(c *Claim) { c.Roots = map[int]manifest.Sum{0: {1}} },
	} {
		t.Run(name, func(t *testing.T) {
			claim := own
			spoil(&claim)
			removed, err := s.Remove(t.Context(), Removal{Snapshots: []Claim{claim}})
			assert.NilError(t, err)
			assert.Equal(t, len(removed.Snapshots), 0)
			assert.DeepEqual(t, removed.Foreign, []string{"id"})
			s.check(t, "id")
		})
	}
	removed, err := s.Remove(t.Context(), Removal{Snapshots: []Claim{own}})
	assert.NilError(t, err)
	assert.DeepEqual(t, removed.Snapshots, []string{"id"})
	assert.Equal(t, len(removed.Foreign), 0)
}

// TestWhatIsDamagedCanBeRemoved has the roots decide where the origin is lost, and nothing
// where the manifest is lost, too.
func TestWhatIsDamagedCanBeRemoved(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	own := publishFrom(t, s, "id", origin())
	stranger := own
	stranger.Roots = map[int]manifest.Sum{0: {1}}
	for _, spoil := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		func(path string) error { return errors.Join(os.Remove(path), fifo(path)) },
		func(path string) error { return errors.Join(os.Remove(path), linkTo("/etc", "passwd")(path)) },
	} {
		assert.NilError(t, spoil(s.path("snapshots", "id", originFile)))
		removed, err := s.Remove(t.Context(), Removal{Snapshots: []Claim{stranger}})
		assert.NilError(t, err)
		assert.DeepEqual(t, removed.Foreign, []string{"id"})
		removed, err = s.Remove(t.Context(), Removal{Snapshots: []Claim{own}})
		assert.NilError(t, err)
		assert.DeepEqual(t, removed.Snapshots, []string{"id"})
		publishFrom(t, s, "id", origin())
	}
	assert.NilError(t, os.Remove(s.path("snapshots", "id", originFile)))
	assert.NilError(t, os.Truncate(s.path("snapshots", "id", "0.man"), 10))
	removed, err := s.Remove(t.Context(), Removal{Snapshots: []Claim{own}})
	assert.NilError(t, err)
	assert.DeepEqual(t, removed.Snapshots, []string{"id"})
}

// FuzzNotes has a store read what somebody else wrote beside a snapshot's manifests.
func FuzzNotes(f *testing.F) {
	f.Add([]byte(`{"engine":"engine","image_store":"overlay2","published":"2026-03-14T09:26:53Z","labels":{"a":"b"}}`), []byte("2026-03-14T09:26:53Z\n"))
	f.Add([]byte(`{"engine":7}`), []byte("0001-01-01T00:00:00Z"))
	f.Add([]byte(`null`), []byte("9999-12-31T23:59:59-23:00"))
	f.Add([]byte(nil), []byte(nil))
	f.Add([]byte(`{"engine":"engine","image_store":"overlay2"}`), []byte("no time"))
	f.Fuzz(func(t *testing.T, origin, missed []byte) {
		s, err := Open(t.TempDir())
		assert.NilError(t, err)
		publishFrom(t, s, "id", Origin{})
		assert.NilError(t, os.WriteFile(s.path("snapshots", "id", originFile), origin, 0o600))
		assert.NilError(t, os.WriteFile(s.path("snapshots", "id", missedFile), missed, 0o600))
		here := Seen{Engine: "engine", ImageStore: "overlay2"}
		removed := look(t, s, published, here)
		since, err := time.Parse(time.RFC3339Nano, strings.TrimSuffix(string(missed), "\n"))
		if err != nil || published.Sub(since) < 7*day {
			assert.Equal(t, len(removed), 0)
		}
	})
}
