//go:build linux

package archive

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/paths"
)

// putBackChosen restores what some patterns name, of a volume that the container has at /data.
func (w *world) putBackChosen(id string, patterns ...string) (RestoreResult, error) {
	w.t.Helper()
	filter, err := paths.New(patterns)
	assert.NilError(w.t, err)
	return restoreAfter(w.t.Context(), w.longestWrite, w.store, RestoreOptions{
		Snapshot: id, Mount: w.mount(), Chosen: &Choice{Filter: filter, At: []string{"/data"}},
	}, w, &Counter{})
}

func TestOnlyWhatWasChosenGoesBack(t *testing.T) {
	w := newWorld(t)
	w.fill("etc/", "etc/a.conf", "etc/deep/", "etc/deep/b.conf", "etc/c.txt", "top")
	id, _ := w.snapshot()
	assert.NilError(t, os.RemoveAll(w.path("etc/deep")))
	w.write("etc/a.conf", []byte("changed"))
	w.write("etc/c.txt", []byte("changed"))
	w.write("etc/new.conf", []byte("new"))
	w.write("etc/new.txt", []byte("new"))

	done, err := w.putBackChosen(id, "**/*.conf")
	assert.NilError(t, err)
	assert.DeepEqual(t, done.Changes, Changes{Created: {Entries: 2, Bytes: 15}, Changed: {Entries: 1, Bytes: 10}, Deleted: {Entries: 1, Bytes: 3}})
	assert.DeepEqual(t, holds(t, w.volume), []string{"etc", "etc/a.conf", "etc/c.txt", "etc/deep", "etc/deep/b.conf", "etc/new.txt", "top"})
	for name, want := range map[string]string{"etc/a.conf": "etc/a.conf", "etc/c.txt": "changed"} {
		got, err := os.ReadFile(w.path(name))
		assert.NilError(t, err)
		assert.Equal(t, string(got), want)
	}

	_, err = w.putBackChosen(id, "/data/etc", "!/data/etc/c.txt")
	assert.NilError(t, err)
	assert.DeepEqual(t, holds(t, w.volume), []string{"etc", "etc/a.conf", "etc/c.txt", "etc/deep", "etc/deep/b.conf", "top"})
	got, err := os.ReadFile(w.path("etc/c.txt"))
	assert.NilError(t, err)
	assert.Equal(t, string(got), "changed")
}

func TestWhatStandsInTheWayOfAChoice(t *testing.T) {
	w := newWorld(t)
	w.fill("dir/", "dir/file", "one")
	assert.NilError(t, os.Link(w.path("one"), w.path("two")))
	id, _ := w.snapshot()
	assert.NilError(t, os.RemoveAll(w.path("dir")))
	w.write("dir", []byte("a file now"))
	_, err := w.putBackChosen(id, "data/dir/file")
	assert.ErrorIs(t, err, errdefs.ErrConflict)
	assert.ErrorContains(t, err, `restore "dir/file": "dir" is no directory now, and was not chosen`)

	assert.NilError(t, os.Remove(w.path("one")))
	_, err = w.putBackChosen(id, "data/two")
	assert.ErrorIs(t, err, errdefs.ErrConflict)
	assert.ErrorContains(t, err, `restore "two": it is another name of "one", which is gone, and was not chosen`)
}

// A file with several names has one content. Whichever is chosen, it goes back.
func TestAFileGoesBackWithAllItsNames(t *testing.T) {
	for _, chosen := range []string{"one", "two"} {
		w := newWorld(t)
		w.fill("one")
		assert.NilError(t, os.Link(w.path("one"), w.path("two")))
		id, _ := w.snapshot()
		want := archivetest.Describe(t, w.volume)
		w.write("two", []byte("changed"))
		_, err := w.putBackChosen(id, "data/"+chosen)
		assert.NilError(t, err)
		archivetest.Equal(t, archivetest.Describe(t, w.volume)[1:], want[1:])
	}
}

// Of random trees and patterns: what a pattern names is what was captured, all else is what it was, and the next
// snapshot, which believes the head, has what one has that reads everything.
func TestRandomChoices(t *testing.T) {
	restored := 0
	for seed := range uint64(60) {
		if t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { restored += randomChoice(t, seed) }); t.Failed() {
			return
		}
	}
	assert.Assert(t, restored > 30, "%d restores went through", restored)
}

func randomChoice(t *testing.T, seed uint64) (restored int) {
	r := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	for range 40 {
		archivetest.Mutate(t, w.volume, r)
	}
	id, _ := w.snapshot()
	then := described(t, w.volume)
	for range 1 + r.IntN(25) {
		archivetest.Mutate(t, w.volume, r)
	}
	if r.IntN(2) == 0 {
		w.settle()
		w.snapshot()
	}
	before := described(t, w.volume)
	patterns := randomPatterns(t, w.volume, r)
	_, err := w.putBackChosen(id, patterns...)
	now := described(t, w.volume)
	if err != nil {
		assert.Assert(t, errors.Is(err, errdefs.ErrConflict), "%v: %v", patterns, err)
		assert.DeepEqual(t, now, before)
		return 0
	}
	filter, err := paths.New(patterns)
	assert.NilError(t, err)
	checkChoice(t, filter, then, before, now)

	w.settle()
	_, quick := w.snapshot()
	_, full := w.doubting(Doubt{Full: true}, Live, Frozen)
	assert.Equal(t, quick.Root, full.Root, "%v", patterns)
	return 1
}

// randomPatterns names some of what there is, and some of what Mutate makes.
func randomPatterns(t *testing.T, root string, r *rand.Rand) []string {
	all := holds(t, root)
	var patterns []string
	for range 1 + r.IntN(3) {
		switch r.IntN(4) {
		case 0:
			patterns = append(patterns, fmt.Sprintf("**/n%d", r.IntN(12)))
		case 1:
			patterns = append(patterns, fmt.Sprintf("data/n%d", r.IntN(12)))
		case 2:
			patterns = append(patterns, fmt.Sprintf("data/n%d", r.IntN(12)), fmt.Sprintf("!**/n%d", r.IntN(12)))
		default:
			if len(all) > 0 {
				patterns = append(patterns, path.Join("data", all[r.IntN(len(all))]))
			}
		}
	}
	return append(patterns, "data/none")
}

// links is how a description names the further names of a file, and modified its time.
var (
	links    = regexp.MustCompile(` links=\d+ of "[^"]*"`)
	modified = regexp.MustCompile(` mtime=\S+`)
)

// described is a description by path.
func described(t *testing.T, root string) map[string]string {
	all := map[string]string{}
	for _, line := range archivetest.Describe(t, root) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, `"`), `" `)
		all[name] = rest
	}
	return all
}

// checkChoice compares every path with what it was then and before. Of a file with several names, each is either.
func checkChoice(t *testing.T, filter *paths.Filter, then, before, now map[string]string) {
	t.Helper()
	for name := range union(then, before, now) {
		chosen := filter.Has(filepath.Join("/data", name))
		isDir := strings.HasPrefix(now[name], "mode=4")
		got, old, kept := links.ReplaceAllString(now[name], ""), links.ReplaceAllString(then[name], ""), links.ReplaceAllString(before[name], "")
		isLinked := links.MatchString(then[name]) || links.MatchString(before[name])
		switch {
		case chosen && got == old, !chosen && got == kept:
		case !chosen && isLinked && got == old:
		case !chosen && isDir && modified.ReplaceAllString(got, "") == modified.ReplaceAllString(kept, ""): // something in it changed
		case !chosen && isDir && kept == "" && got == old: // something in it was made
		case chosen && isDir && old == "" && holdsUnchosen(filter, before, name): // it stays with that
		default:
			t.Errorf("%s, chosen: %t\n  is     %s\n  was    %s\n  before %s", name, chosen, now[name], then[name], before[name])
		}
	}
}

func union(all ...map[string]string) map[string]bool {
	names := map[string]bool{}
	for _, some := range all {
		for name := range some {
			names[name] = true
		}
	}
	return names
}

// holdsUnchosen tells whether something was in a directory that was not chosen with it.
func holdsUnchosen(filter *paths.Filter, before map[string]string, dir string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(name string) bool {
		return strings.HasPrefix(name, dir+"/") && !filter.Has("/data"+name)
	})
}
