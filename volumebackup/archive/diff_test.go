//go:build linux

package archive

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// randomPairs is how many pairs of trees are compared with what diff and stat say of them, unless the environment says how
// many.
const (
	randomPairs    = 30
	roundsVariable = "DOCKER_SNAPSHOT_TEST_ROUNDS"
)

// TestDiffAgreesWithDiffAndStat compares random pairs of trees in every way that there is: two archives, an archive and the
// volume as it is, and two root filesystems. What it finds must be what diff -r --no-dereference and lstat find.
func TestDiffAgreesWithDiffAndStat(t *testing.T) {
	rounds := uint64(randomPairs)
	if text, given := os.LookupEnv(roundsVariable); given {
		var err error
		rounds, err = strconv.ParseUint(text, 10, 64)
		assert.NilError(t, err)
	}
	for seed := range rounds {
		w := newWorld(t)
		r := rand.New(rand.NewPCG(seed, 11))
		archivetest.FillPair(t, w.volume, r)
		before := filepath.Join(t.TempDir(), "before")
		assert.NilError(t, exec.Command("cp", "-a", w.volume, before).Run())
		old, _ := w.snapshot(Idle)
		for range 1 + r.IntN(20) {
			archivetest.ChangePair(t, w.volume, r, true)
		}
		live := w.diff(w.archived(old), Tree{Volume: new(w.mount())})
		now, _ := w.snapshot(Idle)
		want := archivetest.Differences(t, before, w.volume)
		assert.DeepEqual(t, w.diff(w.archived(old), w.archived(now)), want)
		assert.DeepEqual(t, live, want)
		assert.DeepEqual(t, w.diff(w.exported(before), w.exported(w.volume)), want)
		back := w.diff(w.archived(now), w.archived(old))
		for i := range back {
			back[i] = back[i].Inverted()
		}
		assert.DeepEqual(t, back, want)
		assert.Equal(t, len(w.diff(w.archived(now), Tree{Volume: new(w.mount())})), 0)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestDiffLeavesOutWhatIsExcluded changes what a snapshot has and what it leaves out, and makes more of both. What it has
// counts, whatever a .gitignore says by now.
func TestDiffLeavesOutWhatIsExcluded(t *testing.T) {
	w := newWorld(t)
	rules := &labels.Exclusions{Patterns: []string{"cache"}, Globs: []string{"*.log"}, Included: []string{"cache/kept"}, Gitignore: true}
	w.fill("a", "a.log", "cache/", "cache/x", "had", "locked/")
	w.write(".gitignore", []byte("built\nlocked\n"))
	w.capture("one", rules)
	m, err := w.store.OpenManifest("one", 0)
	assert.NilError(t, err)
	root := m.Summary().Root
	m.Close()
	excluded := *rules
	excluded.Kept = &labels.KeptArchive{Snapshot: "one", Root: hex.EncodeToString(root[:])}
	since := func() []changes.Change {
		mount := w.mount()
		mount.Excluded = &excluded
		return w.diff(w.archived("one"), Tree{Volume: &mount})
	}
	assert.Equal(t, len(since()), 0)

	w.write("a.log", []byte("longer than before"))
	w.fill("built", "cache/b", "cache/deep/", "cache/deep/x", "locked/x", "new/", "new/a.log", "new/built/", "new/built/x")
	assert.DeepEqual(t, since(), []changes.Change{{Path: "new", Type: changes.Created}})

	w.write(".gitignore", []byte("built\nlocked\nhad\n"))
	w.write("had", []byte("had more"))
	w.fill("cache/kept/", "cache/kept/b.log")
	assert.DeepEqual(t, since(), []changes.Change{
		{Path: ".gitignore", Type: changes.Modified, SizeDelta: 4},
		{Path: "cache", Type: changes.Created},
		{Path: "cache/kept", Type: changes.Created},
		{Path: "cache/kept/b.log", Type: changes.Created, SizeDelta: 16},
		{Path: "had", Type: changes.Modified, SizeDelta: 5},
		{Path: "new", Type: changes.Created},
	})
	w.noWarnings()
}

func (w *world) diff(before, after Tree) []changes.Change {
	w.t.Helper()
	all := []changes.Change{}
	assert.NilError(w.t, Diff(w.t.Context(), w.store, before, after, w, &Counter{}, func(c changes.Change) error {
		all = append(all, c)
		return nil
	}))
	return all
}

func (w *world) archived(id string) Tree {
	w.t.Helper()
	m, err := w.store.OpenManifest(id, 0)
	assert.NilError(w.t, err)
	return Tree{Manifest: m}
}

// exported is a tree as an engine exports it.
func (w *world) exported(dir string) Tree {
	w.t.Helper()
	tar, err := exec.Command("tar", "-C", dir, "--format=pax", "--xattrs", "--xattrs-include=*", "-cf", "-", ".").Output()
	assert.NilError(w.t, err)
	var list bytes.Buffer
	assert.NilError(w.t, changes.FromTar(bytes.NewReader(tar), &list))
	m, err := w.store.ReadManifest("exported", list.Bytes())
	assert.NilError(w.t, err)
	return Tree{Manifest: m}
}
