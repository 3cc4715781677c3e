//go:build linux

package archive

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
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
		randomTree(t, w.volume, r)
		before := filepath.Join(t.TempDir(), "before")
		assert.NilError(t, exec.Command("cp", "-a", w.volume, before).Run())
		old, _ := w.snapshot(Idle)
		for range 1 + r.IntN(20) {
			randomChange(t, w.volume, r)
		}
		live := w.diff(w.archived(old), Tree{Volume: new(w.mount())})
		now, _ := w.snapshot(Idle)
		want := oracle(t, before, w.volume)
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

// The lines of diff -rq --no-dereference.
var (
	onlyIn     = regexp.MustCompile(`^Only in (.*): (.*)$`)
	differ2    = regexp.MustCompile(`^(?:Files|Symbolic links) (.*) and (.*) differ$`)
	otherTypes = regexp.MustCompile(`^File (.*) is an? (.*) while file (.*) is an? (.*)$`)
)

// oracle asks diff for what differs in content and type, and the kernel for attributes.
func oracle(t *testing.T, before, after string) []changes.Change {
	t.Helper()
	out, err := exec.Command("diff", "-rq", "--no-dereference", before, after).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		assert.Equal(t, failed.ExitCode(), 1)
	}
	found := map[string]changes.Type{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if m := onlyIn.FindStringSubmatch(line); m != nil {
			path, kind := filepath.Join(m[1], m[2]), changes.Created
			root := after
			if strings.HasPrefix(path, before) {
				root, kind = before, changes.Deleted
			}
			below(t, root, path, kind, found)
		} else if m := differ2.FindStringSubmatch(line); m != nil {
			found[relative(t, before, m[1])] = changes.Modified
		} else if m := otherTypes.FindStringSubmatch(line); m != nil {
			if m[2] == m[4] { // two FIFOs
				continue
			}
			found[relative(t, before, m[1])] = changes.Modified
			if m[2] == "directory" {
				below(t, before, m[1], changes.Deleted, found)
			} else if m[4] == "directory" {
				below(t, after, m[3], changes.Created, found)
			}
			found[relative(t, before, m[1])] = changes.Modified
		} else {
			t.Fatalf("diff says %q", line)
		}
	}
	attributes(t, before, after, found)
	all := []changes.Change{}
	for path, kind := range found {
		all = append(all, changes.Change{Path: path, Type: kind, SizeDelta: sizeOf(after, path) - sizeOf(before, path)})
	}
	slices.SortFunc(all, func(a, b changes.Change) int { return manifest.Compare(a.Path, b.Path) })
	return all
}

func relative(t *testing.T, root, path string) string {
	t.Helper()
	name, err := filepath.Rel(root, path)
	assert.NilError(t, err)
	return strings.TrimPrefix(name, ".")
}

// below enters everything in a path.
func below(t *testing.T, root, path string, kind changes.Type, found map[string]changes.Type) {
	t.Helper()
	assert.NilError(t, filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		found[relative(t, root, path)] = kind
		return err
	}))
}

// attributes enters what is on both sides, and differs in what lstat and lgetxattr tell.
func attributes(t *testing.T, before, after string, found map[string]changes.Type) {
	t.Helper()
	assert.NilError(t, filepath.WalkDir(before, func(path string, entry fs.DirEntry, err error) error {
		name := relative(t, before, path)
		if _, known := found[name]; known {
			return err
		}
		var a, b unix.Stat_t
		assert.NilError(t, unix.Lstat(path, &a))
		assert.NilError(t, unix.Lstat(filepath.Join(after, name), &b))
		switch {
		case !entry.IsDir() && a.Mtim != b.Mtim:
			found[name] = changes.Modified
		case a.Mode != b.Mode || a.Uid != b.Uid || a.Gid != b.Gid || xattr(path) != xattr(filepath.Join(after, name)):
			found[name] = changes.PermissionsChanged
		}
		return err
	}))
}

const testXattr = "user.test"

func xattr(path string) string {
	var value [64]byte
	n, err := unix.Lgetxattr(path, testXattr, value[:])
	if err != nil {
		return ""
	}
	return "=" + string(value[:n])
}

func sizeOf(root, path string) int64 {
	info, err := os.Lstat(filepath.Join(root, path))
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// randomTree makes a tree. Times are whole seconds, as in what engines export.
func randomTree(t *testing.T, root string, r *rand.Rand) {
	t.Helper()
	for range 30 {
		makeRandom(t, randomPath(root, r), r)
	}
	setWholeSeconds(t, root, r)
}

func randomPath(root string, r *rand.Rand) string {
	path := root
	for range 1 + r.IntN(3) {
		path = filepath.Join(path, string(rune('a'+r.IntN(6))))
	}
	return path
}

// makeRandom makes something at a path whose parents are directories, and replaces what is there.
func makeRandom(t *testing.T, path string, r *rand.Rand) {
	t.Helper()
	if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return // a file is above
	}
	assert.NilError(t, os.RemoveAll(path))
	switch r.IntN(6) {
	case 0:
		assert.NilError(t, os.Mkdir(path, 0o755))
	case 1:
		assert.NilError(t, os.Symlink(fmt.Sprint("to", r.IntN(3)), path))
	case 2:
		assert.NilError(t, unix.Mkfifo(path, 0o644))
	default:
		assert.NilError(t, os.WriteFile(path, fmt.Appendf(nil, "%0*d", r.IntN(2000), r.IntN(3)), 0o644))
	}
}

func randomChange(t *testing.T, root string, r *rand.Rand) {
	t.Helper()
	path := randomPath(root, r)
	info, err := os.Lstat(path)
	if err != nil {
		makeRandom(t, path, r)
		setTime(t, path, r)
		return
	}
	isLink := info.Mode()&fs.ModeSymlink != 0
	switch r.IntN(7) {
	case 0:
		assert.NilError(t, os.RemoveAll(path))
	case 1:
		makeRandom(t, path, r)
		setTime(t, path, r)
	case 2:
		if !isLink {
			assert.NilError(t, os.Chmod(path, fs.FileMode(0o600+r.IntN(0o100))))
		}
	case 3:
		assert.NilError(t, os.Lchown(path, r.IntN(3), r.IntN(3)))
	case 4:
		if info.Mode().IsRegular() || info.IsDir() {
			assert.NilError(t, unix.Lsetxattr(path, testXattr, fmt.Append(nil, r.IntN(3)), 0))
		}
	case 5:
		setTime(t, path, r)
	case 6: // the same size and time, and other content
		if info.Mode().IsRegular() && info.Size() > 0 {
			content, err := os.ReadFile(path)
			assert.NilError(t, err)
			content[r.IntN(len(content))] ^= 1
			assert.NilError(t, os.WriteFile(path, content, 0o644))
			assert.NilError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		}
	}
}

func setTime(t *testing.T, path string, r *rand.Rand) {
	t.Helper()
	when := []unix.Timespec{{Sec: time.Now().Unix()}, {Sec: 1_700_000_000 + r.Int64N(3)}}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, when, unix.AT_SYMLINK_NOFOLLOW); err != nil && !os.IsNotExist(err) {
		assert.Assert(t, strings.Contains(err.Error(), "not a directory"), "%v", err)
	}
}

func setWholeSeconds(t *testing.T, root string, r *rand.Rand) {
	t.Helper()
	assert.NilError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		setTime(t, path, r)
		return err
	}))
}
