//go:build linux

package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// rootTree makes a tree with every kind of entry that an export has, and a socket, which it has not.
func rootTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	write := func(name, content string, mode os.FileMode) {
		assert.NilError(t, os.MkdirAll(filepath.Dir(at(name)), 0o755))
		assert.NilError(t, os.WriteFile(at(name), []byte(content), 0o600))
		assert.NilError(t, os.Chmod(at(name), mode))
	}
	write("etc/hosts", "of the engine", 0o644)
	write(".dockerenv", "", 0o755)
	write("etc/app", "content", 0o640)
	write("empty", "", 0o444)
	write("bin/tool", "runs", 0o755|fs.ModeSetuid)
	write("big", strings.Repeat("big", manifest.MaxPiece/2), 0o644)
	write("z/last", "two names", 0o644)
	assert.NilError(t, os.Link(at("z/last"), at("a-first")))
	assert.NilError(t, os.Symlink("etc/app", at("link")))
	assert.NilError(t, unix.Mkfifo(at("fifo"), 0o622))
	assert.NilError(t, os.Mkdir(at("tmp"), 0o755))
	assert.NilError(t, os.Chmod(at("tmp"), 0o777|fs.ModeSticky))
	assert.NilError(t, os.WriteFile(at("sparse"), []byte("x"), 0o600))
	assert.NilError(t, os.Truncate(at("sparse"), 3<<20))
	assert.NilError(t, os.Chtimes(at("etc/app"), time.Unix(1, 0), time.Unix(1_000_000_000, 999_999_999)))
	if os.Getuid() == 0 {
		assert.NilError(t, os.Chown(at("etc/app"), 1234, 4321))
		assert.NilError(t, unix.Mknod(at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	assert.NilError(t, err)
	defer closeFD(fd)
	t.Chdir(root) // a socket's path is short
	assert.NilError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: "socket"}))
	return root
}

// exportOf is a tar of a tree, as an engine makes it: in the order of names, times to the second, a further name of a file as
// a link, no sockets.
func exportOf(t *testing.T, root string) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	first := map[uint64]string{}
	assert.NilError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		assert.NilError(t, err)
		var st unix.Stat_t
		assert.NilError(t, unix.Lstat(path, &st))
		info, err := os.Lstat(path)
		assert.NilError(t, err)
		if path == root || info.Mode()&fs.ModeSocket != 0 {
			return nil
		}
		target, _ := os.Readlink(path)
		header, err := tar.FileInfoHeader(info, target)
		assert.NilError(t, err)
		header.Name, err = filepath.Rel(root, path)
		assert.NilError(t, err)
		header.Format, header.ModTime = tar.FormatPAX, header.ModTime.Truncate(time.Second)
		if name, further := first[st.Ino]; further && !info.IsDir() {
			header.Typeflag, header.Linkname, header.Size = tar.TypeLink, name, 0
		}
		first[st.Ino] = header.Name
		assert.NilError(t, w.WriteHeader(header))
		if header.Typeflag != tar.TypeReg {
			return nil
		}
		content, err := os.ReadFile(path)
		assert.NilError(t, err)
		_, err = w.Write(content)
		return err
	}))
	assert.NilError(t, w.Close())
	return &out
}

// entriesOf decodes a list. What only a walk knows is left out, unless it is asked for.
func entriesOf(t *testing.T, list []byte, cached bool) []manifest.Entry {
	t.Helper()
	r, err := manifest.NewReader(bytes.NewReader(list), int64(len(list)), manifest.NewPackTable())
	assert.NilError(t, err)
	defer r.Close()
	var all []manifest.Entry
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		assert.NilError(t, err)
		if !cached {
			e.Cached = manifest.Cached{}
		}
		all = append(all, *e)
	}
}

func walkOf(t *testing.T, o RootOptions) ([]byte, RootWalk) {
	t.Helper()
	var list bytes.Buffer
	walk, err := WalkRoot(t.Context(), o, &list, &Counter{})
	assert.NilError(t, err)
	return list.Bytes(), walk
}

// A comparison must not show which of the two sides was walked.
func TestAWalkFindsWhatAnExportHas(t *testing.T) {
	root := rootTree(t)
	var exported bytes.Buffer
	assert.NilError(t, changes.FromTar(exportOf(t, root), &exported))
	list, walk := walkOf(t, RootOptions{Path: root})
	assert.DeepEqual(t, entriesOf(t, list, false), entriesOf(t, exported.Bytes(), false))
	assert.Equal(t, len(walk.Mounts), 0)
	assert.Equal(t, walk.Files, int64(6))
	assert.Equal(t, walk.Read, int64(5), "an empty file is not read")
}

// later is after everything that a test makes.
func later() int64 { return time.Now().Add(time.Hour).Unix() }

// What has changed since the container was made is read, whatever is known of it.
func TestAWalkReadsWhatIsNotOfTheImage(t *testing.T) {
	root := rootTree(t)
	list, _ := walkOf(t, RootOptions{Path: root, Created: later()})
	for _, test := range []struct {
		name    string
		known   []byte
		created int64
		change  func()
		read    int64
	}{
		{name: "all is known", known: list, created: later()},
		{name: "nothing is known", created: later(), read: 5},
		{name: "the list is damaged", known: append(bytes.Clone(list[:len(list)-200]), list[len(list)-199:]...), created: later(), read: 5},
		{name: "the container is older than its files", known: list, created: later() - 7200, read: 5},
		{name: "same size, same time", known: list, created: later(), read: 1, change: func() {
			path := filepath.Join(root, "etc/app")
			info, err := os.Stat(path)
			assert.NilError(t, err)
			assert.NilError(t, os.WriteFile(path, []byte("CONTENT"), 0o600))
			assert.NilError(t, os.Chtimes(path, time.Time{}, info.ModTime()))
		}},
		{name: "same content, another mode", known: list, created: later(), read: 2, change: func() {
			assert.NilError(t, os.Chmod(filepath.Join(root, "bin/tool"), 0o700))
		}},
	} {
		if test.change != nil {
			test.change()
		}
		var exported bytes.Buffer
		assert.NilError(t, changes.FromTar(exportOf(t, root), &exported))
		got, walk := walkOf(t, RootOptions{Path: root, Known: test.known, Created: test.created})
		assert.Equal(t, walk.Read, test.read, test.name)
		assert.DeepEqual(t, entriesOf(t, got, false), entriesOf(t, exported.Bytes(), false))
	}
}

// Only what nobody can be writing to is noted as known.
func TestAWalkKnowsWhatMayBeBelievedNextTime(t *testing.T) {
	root := rootTree(t)
	for _, created := range []int64{0, later()} {
		list, _ := walkOf(t, RootOptions{Path: root, Created: created})
		for _, e := range entriesOf(t, list, true) {
			if e.Kind != manifest.HardLink && e.Path != "" {
				assert.Equal(t, e.Cached.Inode == 0, created == 0, e.Path)
			}
		}
	}
}

// A process may have changed its root, and then what it shows is not the container's.
func TestWhatIsNoRootFilesystemIsNotWalked(t *testing.T) {
	assert.ErrorIs(t, CheckRoot(t.TempDir()), errNoRoot)
	assert.ErrorIs(t, CheckRoot("/proc"), errNoRoot)
	assert.ErrorIs(t, CheckRoot(filepath.Join(t.TempDir(), "none")), fs.ErrNotExist)
}
