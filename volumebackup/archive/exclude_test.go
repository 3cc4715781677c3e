//go:build linux

package archive

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// capture archives the volume without what is excluded, and returns how many entries were left out.
func (w *world) capture(id string, excluded *labels.Exclusions) int64 {
	w.t.Helper()
	m := w.mount()
	m.Excluded = excluded
	b, err := begin(w.t.Context(), w.longestWrite, w.store, id, []Mount{m})
	assert.NilError(w.t, err)
	defer func() { assert.NilError(w.t, b.Discard()) }()
	var left int64
	for _, mode := range []Mode{Live, Frozen} {
		found, err := b.Pass(w.t.Context(), mode, w, &Counter{})
		assert.NilError(w.t, err)
		left = found[0].Left
	}
	_, err = b.Publish(w)
	assert.NilError(w.t, err)
	return left
}

// putBack restores the volume, and leaves alone what is excluded.
func (w *world) putBack(id string, excluded *labels.Exclusions) (RestoreResult, error) {
	m := w.mount()
	m.Excluded = excluded
	return restoreAfter(w.t.Context(), w.longestWrite, w.store, RestoreOptions{Snapshot: id, Mount: m}, w, &Counter{})
}

// fill makes files that hold their own names; a name that ends with a slash is a directory.
func (w *world) fill(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			assert.NilError(w.t, os.Mkdir(w.path(dir), 0o755))
			continue
		}
		w.write(name, []byte(name))
	}
}

// holds lists what is in a directory, in order.
func holds(t *testing.T, root string) []string {
	t.Helper()
	tree, err := openTree(root)
	assert.NilError(t, err)
	defer func() { assert.NilError(t, tree.close()) }()
	var all []string
	assert.NilError(t, tree.walk(t.Context(), func(f *found) error {
		if f.path != "" {
			all = append(all, f.path)
		}
		return nil
	}))
	slices.Sort(all)
	return all
}

func TestWhatIsExcludedIsNotArchived(t *testing.T) {
	w := newWorld(t)
	w.fill("a", "a.log", "build/", "build/x", "build/keep/", "build/keep/y", "build/keep/y.log", "build/z/", "build/z/z")
	left := w.capture("one", &labels.Exclusions{Patterns: []string{"build"}, Globs: []string{"*.log"}, Included: []string{"build/keep"}})
	assert.Equal(t, left, int64(3), "a.log, build/x and build/z")
	copied := archivetest.Dir(t)
	w.restore("one", "copy", copied)
	assert.DeepEqual(t, holds(t, copied), []string{"a", "build", "build/keep", "build/keep/y", "build/keep/y.log"})

	left = w.capture("two", &labels.Exclusions{Patterns: []string{"build"}, Included: []string{"nowhere"}})
	assert.Equal(t, left, int64(7), "all that is in it was looked at, and nothing of it included")
	copied = archivetest.Dir(t)
	w.restore("two", "copy2", copied)
	assert.DeepEqual(t, holds(t, copied), []string{"a", "a.log"})
	w.noWarnings()
}

// A restore in place leaves alone what is excluded, also where all around it goes, and does the rest.
func TestARestoreLeavesAloneWhatIsExcluded(t *testing.T) {
	w := newWorld(t)
	rules := &labels.Exclusions{Patterns: []string{"cache"}, Globs: []string{"*.log"}, Included: []string{"cache/kept"}}
	w.fill("a", "a.log", "cache/", "cache/x", "d/", "d/in")
	w.capture("one", rules)
	w.write("a", []byte("changed"))
	w.write("a.log", []byte("newer"))
	w.write("cache/x", []byte("newer"))
	w.fill("cache/kept/", "cache/kept/new", "new/", "new/b.log", "new/c", "new/deep/", "new/deep/er/", "new/deep/er/cache/", "new/deep/er/cache/x", "d/b.log", "gone/", "gone/x")
	assert.NilError(t, os.Remove(w.path("d/in")))
	before, err := os.Stat(w.path("new"))
	assert.NilError(t, err)

	done, err := w.putBack("one", rules)
	assert.NilError(t, err)
	assert.DeepEqual(t, holds(t, w.volume), []string{
		"a", "a.log", "cache", "cache/x", "d", "d/b.log", "d/in", "new", "new/b.log", "new/deep", "new/deep/er", "new/deep/er/cache", "new/deep/er/cache/x",
	})
	for name, want := range map[string]string{"a": "a", "a.log": "newer", "cache/x": "newer", "d/in": "d/in"} {
		got, err := os.ReadFile(w.path(name))
		assert.NilError(t, err)
		assert.Equal(t, string(got), want, name)
	}
	after, err := os.Stat(w.path("new"))
	assert.NilError(t, err)
	assert.Equal(t, before.Mode(), after.Mode())
	assert.Equal(t, done.Changes[Deleted].Entries, int64(5), "cache/kept with new, new/c, gone with x")

	again, err := w.putBack("one", rules)
	assert.NilError(t, err)
	assert.Equal(t, again.Changes, Changes{})
	w.noWarnings()
}

// What would have to go to make room for a file is not deleted. Nothing is.
func TestARestoreRefusesToReplaceADirectoryThatHoldsSomethingExcluded(t *testing.T) {
	w := newWorld(t)
	rules := &labels.Exclusions{Globs: []string{"*.log"}}
	w.fill("a", "b")
	w.capture("one", rules)
	assert.NilError(t, os.Remove(w.path("a")))
	w.fill("a/", "a/x/", "a/x/y.log")
	w.write("b", []byte("changed"))
	_, err := w.putBack("one", rules)
	assert.Assert(t, errdefs.IsConflict(err), "%v", err)
	assert.ErrorContains(t, err, `replace "a": it holds "a/x/y.log", which is excluded`)
	got, err := os.ReadFile(w.path("b"))
	assert.NilError(t, err)
	assert.Equal(t, string(got), "changed")
	assert.DeepEqual(t, holds(t, w.volume), []string{"a", "a/x", "a/x/y.log", "b"})
}

// Both the .gitignore files of the archive and those of the volume say what a restore leaves alone.
func TestGitignoreFilesOfThenAndNow(t *testing.T) {
	w := newWorld(t)
	rules := &labels.Exclusions{Gitignore: true}
	w.fill("a.log", "b.tmp", "sub/", "sub/keep.log")
	w.write(".gitignore", []byte("*.log\n"))
	w.write("sub/.gitignore", []byte("!keep.log\n"))
	assert.Equal(t, w.capture("one", rules), int64(1))

	w.write(".gitignore", []byte("*.tmp\nnode_modules\n"))
	w.write("b.tmp", []byte("changed"))
	w.fill("c.tmp", "d.log", "e", "node_modules/", "node_modules/x")
	// What the next restore is going to change is kept, though it is ignored by now.
	root := w.root("one")
	keeping := &labels.Exclusions{Gitignore: true, Kept: &labels.KeptArchive{Snapshot: "one", Root: hex.EncodeToString(root[:])}}
	assert.Equal(t, w.capture("safety", keeping), int64(2), "c.tmp and node_modules")

	assert.NilError(t, os.Remove(w.path("sub/keep.log")))
	assert.Equal(t, w.capture("safety2", keeping), int64(2))
	_, err := w.putBack("one", rules)
	assert.NilError(t, err)
	assert.DeepEqual(t, holds(t, w.volume), []string{
		".gitignore", "a.log", "b.tmp", "c.tmp", "d.log", "node_modules", "node_modules/x", "sub", "sub/.gitignore", "sub/keep.log",
	})
	_, err = w.putBack("safety", keeping)
	assert.NilError(t, err)
	assert.DeepEqual(t, holds(t, w.volume), []string{
		".gitignore", "a.log", "b.tmp", "c.tmp", "d.log", "e", "node_modules", "node_modules/x", "sub", "sub/.gitignore", "sub/keep.log",
	})
	got, err := os.ReadFile(w.path("b.tmp"))
	assert.NilError(t, err)
	assert.Equal(t, string(got), "changed")

	// What the restore has made goes again, ignored or not; once its archive is gone, what is ignored stays.
	w.write(".gitignore", []byte("*.tmp\n*.log\n"))
	w.write("sub/.gitignore", []byte("*.log\n"))
	_, err = w.putBack("safety2", keeping)
	assert.NilError(t, err)
	_, err = os.Stat(w.path("sub/keep.log"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	w.fill("sub/keep.log")
	w.write("sub/.gitignore", []byte("*.log\n"))
	w.remove("one")
	_, err = w.putBack("safety2", keeping)
	assert.NilError(t, err)
	_, err = os.Stat(w.path("sub/keep.log"))
	assert.NilError(t, err)
	w.noWarnings()
}

// A .gitignore that is no file, or too long, does not count; the archive has everything then.
func TestOddGitignoreFiles(t *testing.T) {
	w := newWorld(t)
	w.fill("a/", "a/x", "b/", "b/x", "c/", "c/x", "d/", "d/x")
	assert.NilError(t, unix.Mkfifo(w.path("a/.gitignore"), 0o600))
	assert.NilError(t, os.Mkdir(w.path("b/.gitignore"), 0o700))
	w.write("rules", []byte("*\n"))
	assert.NilError(t, os.Symlink("../rules", w.path("c/.gitignore")))
	w.write("d/.gitignore", []byte(strings.Repeat("*\n", 1<<19)+"*\n"))
	assert.Equal(t, w.capture("one", &labels.Exclusions{Gitignore: true}), int64(0))
	assert.Equal(t, len(w.warnings), 1, "%v", w.warnings)
	assert.Assert(t, strings.Contains(w.warnings[0], `"d": its .gitignore does not count`), w.warnings[0])
}

// A directory that is excluded is never read: who reads this one is told that it may not, and a restore would fail.
func TestNobodyReadsAnExcludedDirectory(t *testing.T) {
	const nobody = 65534
	w := newWorld(t)
	w.fill("a", "trap/", "trap/x", "b/", "b/trap/", "b/trap/.gitignore")
	for _, name := range []string{"trap", "b/trap"} {
		assert.NilError(t, os.Chmod(w.path(name), 0))
	}
	for _, dir := range []string{w.dir, w.volume} {
		assert.NilError(t, os.Chmod(filepath.Dir(dir), 0o755))
		assert.NilError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, nobody, nobody))
		}))
	}
	rules := &labels.Exclusions{Patterns: []string{"trap"}, Gitignore: true}
	func() {
		assert.NilError(t, syscall.Setresuid(-1, nobody, -1))
		defer func() { assert.NilError(t, syscall.Setresuid(-1, 0, -1)) }()
		_, err := w.putBack(w.trapped("everything", nil), nil)
		assert.ErrorIs(t, err, unix.EACCES, "the trap works")
		assert.Equal(t, len(w.warnings), 2, "%v", w.warnings)
		w.warnings = nil

		w.trapped("one", rules)
		w.write("a", []byte("changed"))
		w.fill("c/", "c/trap/")
		assert.NilError(t, os.Chmod(w.path("c/trap"), 0))
		_, err = w.putBack("one", rules)
		assert.NilError(t, err)
	}()
	w.noWarnings()
	assert.DeepEqual(t, holds(t, w.volume), []string{"a", "b", "b/trap", "b/trap/.gitignore", "c", "c/trap", "trap", "trap/x"})
}

func (w *world) trapped(id string, rules *labels.Exclusions) string {
	w.t.Helper()
	w.capture(id, rules)
	return id
}
