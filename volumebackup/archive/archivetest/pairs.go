//go:build linux

package archivetest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
)

// FillPair makes a random tree. Times are whole seconds, as in what engines export.
func FillPair(t testing.TB, root string, r *rand.Rand) {
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
func makeRandom(t testing.TB, path string, r *rand.Rand) {
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

// ChangePair changes one thing in a tree. Xattrs are not to be changed where engines lose them.
func ChangePair(t testing.TB, root string, r *rand.Rand, withXattrs bool) {
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
		if withXattrs && (info.Mode().IsRegular() || info.IsDir()) {
			assert.NilError(t, unix.Lsetxattr(path, testXattr, fmt.Append(nil, r.IntN(3)), 0))
		}
	case 5:
		setTime(t, path, r)
	case 6: // the same size and time, and other content
		if info.Mode().IsRegular() && info.Size() > 0 {
			content, err := os.ReadFile(path)
			assert.NilError(t, err)
			content[r.IntN(len(content))] ^= 1
			assert.NilError(t, os.WriteFile(path, content, 0o644)) //nolint:gosec // the tree is the test's own
			assert.NilError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		}
	}
}

func setTime(t testing.TB, path string, r *rand.Rand) {
	t.Helper()
	when := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: 1_700_000_000 + r.Int64N(3)}}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, when, unix.AT_SYMLINK_NOFOLLOW); err != nil && !os.IsNotExist(err) {
		assert.Assert(t, strings.Contains(err.Error(), "not a directory"), "%v", err)
	}
}

func setWholeSeconds(t testing.TB, root string, r *rand.Rand) {
	t.Helper()
	assert.NilError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		setTime(t, path, r)
		return err
	}))
}
