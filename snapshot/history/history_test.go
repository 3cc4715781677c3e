package history_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/history"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// taken is a snapshot of a container, so many minutes after noon.
func taken(id labels.ID, minute int, of string, parent labels.ID) catalog.Snapshot {
	name, _, _ := strings.Cut(of, "/")
	return catalog.Snapshot{Record: labels.Record{
		ID: id, Created: noon.Add(time.Duration(minute) * time.Minute), Parent: parent, Container: labels.Container{ID: of, Name: name},
	}}
}

func restored(id labels.ID, minute int, to string) catalog.Restore {
	name, _, _ := strings.Cut(to, "/")
	return catalog.Restore{Snapshot: id, At: noon.Add(time.Duration(minute) * time.Minute), Container: name, ContainerID: to}
}

func exists(id string) container.Summary {
	name, _, _ := strings.Cut(id, "/")
	return container.Summary{ID: id, Names: []string{"/" + name}, State: "running"}
}

// drawn is a history as text.
func drawn(h history.History) string {
	var b strings.Builder
	for i, row := range h.Draw() {
		n := h[i]
		joins, own := row.Text(n.Snapshot == nil)
		for _, line := range joins {
			b.WriteString(line + "\n")
		}
		word := "restored " + string(n.Restore.Snapshot)
		if n.Snapshot != nil {
			word = string(n.Snapshot.ID)
		}
		for _, c := range n.Here {
			word += " <- " + c.Container
		}
		fmt.Fprintln(&b, own, word)
	}
	return b.String()
}

func TestHistory(t *testing.T) {
	for name, test := range map[string]struct {
		snapshots  []catalog.Snapshot
		restores   []catalog.Restore
		containers []container.Summary
		want       string
	}{
		"nothing": {},
		"a line": {
			snapshots:  []catalog.Snapshot{taken("b", 2, "web/1", "a"), taken("a", 1, "web/1", "")},
			containers: []container.Summary{exists("web/1"), exists("db/1")},
			want:       "* b <- web\n* a\n",
		},
		"restored in place: what was done since is a branch": {
			snapshots:  []catalog.Snapshot{taken("d", 5, "web/2", "a"), taken("safety", 3, "web/1", "b"), taken("b", 2, "web/1", "a"), taken("a", 1, "web/1", "")},
			restores:   []catalog.Restore{restored("a", 4, "web/2")},
			containers: []container.Summary{exists("web/2")},
			want:       "* d <- web\no restored a\n| * safety\n| * b\n|/\n* a\n",
		},
		"restored at the moment of its safety snapshot": {
			snapshots: []catalog.Snapshot{taken("safety", 2, "web/1", "a"), taken("a", 1, "web/1", "")},
			restores:  []catalog.Restore{restored("a", 2, "web/2")},
			want:      "o restored a\n| * safety\n|/\n* a\n",
		},
		"copies stand where they were made": {
			snapshots:  []catalog.Snapshot{taken("b", 2, "web/1", "a"), taken("a", 1, "web/1", "")},
			restores:   []catalog.Restore{restored("a", 3, "copy/1"), restored("a", 4, "copy/2")},
			containers: []container.Summary{exists("copy/1"), exists("copy/2"), exists("web/1")},
			want:       "o restored a <- copy\n| o restored a <- copy\n| | * b <- web\n| |/\n|/\n* a\n",
		},
		"some were removed in between": {
			snapshots: []catalog.Snapshot{taken("d", 4, "web/1", "c"), taken("x", 3, "db/1", ""), taken("a", 1, "web/1", "")},
			want:      "* d\n: * x\n* a\n",
		},
		"over others": {
			snapshots: []catalog.Snapshot{taken("e", 6, "web/1", "a"), taken("d", 5, "db/1", "b"), taken("c", 4, "web/1", "a"), taken("b", 2, "db/1", ""), taken("a", 1, "web/1", "")},
			want:      "* e\n| * d\n| | * c\n| * | b\n|__/\n* a\n",
		},
		"all since the restore were removed": {
			snapshots: []catalog.Snapshot{taken("d", 4, "web/2", "c"), taken("x", 3, "db/1", ""), taken("a", 1, "web/1", "")},
			restores:  []catalog.Restore{restored("a", 2, "web/2")},
			want:      "* d\n: * x\no restored a\n* a\n",
		},
		"what was restored is gone": {
			snapshots: []catalog.Snapshot{taken("d", 4, "web/2", "c")},
			restores:  []catalog.Restore{restored("c", 3, "web/2")},
			want:      "* d\no restored c\n",
		},
		"the parent is of later: clocks differ": {
			snapshots: []catalog.Snapshot{taken("b", 1, "web/1", "a"), taken("a", 2, "web/1", "b")},
			want:      "* a\n* b\n",
		},
		"lines of two containers": {
			snapshots: []catalog.Snapshot{taken("d", 4, "db/1", "b"), taken("c", 3, "web/1", "a"), taken("b", 2, "db/1", ""), taken("a", 1, "web/1", "")},
			want:      "* d\n| * c\n* | b\n  * a\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, drawn(history.Of(test.snapshots, test.restores, test.containers)), test.want)
		})
	}
}

func TestVolumesThatHaveChanged(t *testing.T) {
	with := func(s catalog.Snapshot, roots ...string) catalog.Snapshot {
		for i, root := range roots {
			s.Mounts = append(s.Mounts, labels.Mount{Name: fmt.Sprint("v", i), Destination: fmt.Sprint("/", i), Archive: &labels.Archive{Root: root, Entries: int64(10 * len(root)), Bytes: 5}})
		}
		return s
	}
	h := history.Of([]catalog.Snapshot{
		with(taken("b", 3, "web/2", "a"), "xx", "y", "z"), with(taken("a", 1, "web/1", ""), "x", "y"),
	}, []catalog.Restore{restored("a", 2, "web/2")}, nil)
	changed, known := h.Changes(0)
	assert.Assert(t, known)
	assert.DeepEqual(t, changed, []history.Changed{{Volume: "v0", Entries: 10}, {Volume: "v2", Entries: 10, Bytes: 5}})
	_, known = h.Changes(1)
	assert.Assert(t, !known, "a restore has no changes")
	_, known = h.Changes(2)
	assert.Assert(t, !known, "the first has nothing to compare with")
}

// Whatever labels claim: every line leads from a node to the one that it follows, and to no other.
func TestLinesLeadWhereTheyShould(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var snapshots []catalog.Snapshot
		var restores []catalog.Restore
		for i := range 2 + random.IntN(20) {
			parent := labels.ID(fmt.Sprint(random.IntN(22)))
			of := fmt.Sprintf("web/%d", random.IntN(3))
			if random.IntN(4) == 0 {
				restores = append(restores, restored(parent, random.IntN(20), of))
				continue
			}
			snapshots = append(snapshots, taken(labels.ID(fmt.Sprint(i)), random.IntN(20), of, parent))
		}
		h := history.Of(snapshots, restores, nil)
		assert.Equal(t, len(h), len(snapshots)+len(restores))
		leads := map[int]int{} // by lane: which node its line comes from
		for i, row := range h.Draw() {
			for _, lane := range append([]int{row.Lane}, row.Joins...) {
				from, some := leads[lane]
				assert.Equal(t, some, lane != row.Lane || !row.Newest, "seed %d, row %d", seed, i)
				assert.Assert(t, !some || h[from].Follows == i, "seed %d, row %d", seed, i)
				delete(leads, lane)
			}
			if h[i].Follows != history.Nothing {
				assert.Assert(t, h[i].Follows > i)
				leads[row.Lane] = i
			}
			for lane, line := range row.Below {
				from, some := leads[lane]
				assert.Equal(t, line != history.Empty, some, "seed %d, row %d", seed, i)
				assert.Assert(t, !some || (line == history.Dashed) == h[from].Gap)
			}
			row.Text(h[i].Snapshot == nil)
		}
		assert.Equal(t, len(leads), 0)
	}
}
