//go:build linux

package store

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// heldBy sums up what just these snapshots hold together.
func heldBy(h Holdings, ids ...string) (total int64) {
	want := map[string]bool{}
	for _, id := range ids {
		want[id] = true
	}
	for _, set := range h.Sets {
		members := map[string]bool{}
		for one := set; ; one = h.Sets[one.Rest] {
			members[h.Snapshots[one.Snapshot].Snapshot] = true
			if one.Rest == noSet {
				break
			}
		}
		same := len(members) == len(want)
		for id := range want {
			same = same && members[id]
		}
		if same {
			total += set.Bytes
		}
	}
	return total
}

func TestUsageTellsWhoHoldsWhatTogether(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	a := publish(t, s, "a", []string{strings.Repeat("1", 10_000), strings.Repeat("2", 20_000)})
	b := publish(t, s, "b", []string{strings.Repeat("3", 40_000)}, a...)
	publish(t, s, "c", nil, a[0], a[0], b[2])
	publish(t, s, "d", []string{strings.Repeat("4", 80_000)})
	h, err := s.Usage(t.Context())
	assert.NilError(t, err)
	const overhead = 8 << 10 // tar's blocks, and manifests
	near := func(got, want int64) {
		t.Helper()
		assert.Assert(t, got >= want && got < want+overhead, "got %d, want about %d", got, want)
	}
	near(heldBy(h, "a", "b", "c"), 10_000)
	near(heldBy(h, "a", "b"), 20_000)
	near(heldBy(h, "b", "c"), 40_000)
	near(heldBy(h, "d"), 80_000)
	near(heldBy(h, "a"), 0)
	near(heldBy(h, "b"), 0)
	assert.Equal(t, len(h.Snapshots), 4)
	near(h.Snapshots[0].Shared, 30_000)
	near(h.Snapshots[1].Shared, 70_000)
	near(h.Snapshots[2].Shared, 50_000)
	near(h.Snapshots[3].Own, 80_000)
	assert.Assert(t, h.Total > 150_000)

	// Removing frees what it says.
	before := h.Total
	removed, err := s.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: "d"}, {Snapshot: "a"}, {Snapshot: "b"}}})
	assert.NilError(t, err)
	assert.Equal(t, len(removed.Snapshots), 3, "%v", removed)
	want := heldBy(h, "d") + heldBy(h, "a") + heldBy(h, "b") + heldBy(h, "a", "b")
	assert.Assert(t, removed.Freed > want-5*overhead && removed.Freed < want+5*overhead, "freed %d of %d, expected %d", removed.Freed, before, want)
}

func TestTheStoreOnDiskIsWhatDuSays(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	assert.NilError(t, err)
	a := publish(t, s, "a", []string{strings.Repeat("1", 50_000), strings.Repeat("2", 300_000)})
	publish(t, s, "b", nil, a[0])
	_, err = s.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: "a"}}})
	assert.NilError(t, err)
	h, err := s.Usage(t.Context())
	assert.NilError(t, err)
	assert.Equal(t, h.Total, sumOf(t, "du -s --block-size=1 .", dir))
	assert.Equal(t, h.Holes, sumOf(t, `find . -type f -printf '%s %b\n' | awk '$1 > 512*$2 { n += $1 - 512*$2 } END { print n+0 }'`, dir))
	assert.Assert(t, h.Holes > 250_000, "%d", h.Holes)
}

// sumOf is the number with which the output of a shell command begins.
func sumOf(t *testing.T, command, dir string) int64 {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	shell.Dir = dir
	out, err := shell.Output()
	assert.NilError(t, err)
	n, err := strconv.ParseInt(strings.Fields(string(out))[0], 10, 64)
	assert.NilError(t, err)
	return n
}

func TestTooManySetsAreNotToldApart(t *testing.T) {
	h := newHolders(2)
	a := h.add(noSet, 0, 5)
	b := h.add(a, 1, 5)
	assert.Equal(t, h.add(b, 2, 5), b)
	assert.Equal(t, h.add(noSet, 3, 7), 2)
	assert.DeepEqual(t, h.sets, []HolderSet{{Rest: noSet}, {Rest: 0, Snapshot: 1, Bytes: 5}, {Rest: noSet, Snapshot: 3, Bytes: 7}})
}
