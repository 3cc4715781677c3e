//go:build linux

package archivetest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
)

// Mutate makes a random change to a tree: it creates, writes, truncates, punches, renames, links,
// deletes, replaces, or changes attributes.
func Mutate(t testing.TB, root string, r *rand.Rand) {
	t.Helper()
	m := mutator{t: t, root: root, r: r}
	assert.NilError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			m.dirs = append(m.dirs, path)
		case d.Type().IsRegular():
			m.files = append(m.files, path)
		default:
			m.others = append(m.others, path)
		}
		return nil
	}))
	m.change()
}

type mutator struct {
	t      testing.TB
	root   string
	r      *rand.Rand
	dirs   []string
	files  []string
	others []string
}

func (m *mutator) ok(err error) {
	m.t.Helper()
	assert.NilError(m.t, err)
}

func (m *mutator) pick(paths []string) string { return paths[m.r.IntN(len(paths))] }

// fresh is a path that nothing is at yet, often one that something was at before.
func (m *mutator) fresh() string {
	for {
		path := filepath.Join(m.pick(m.dirs), fmt.Sprintf("n%d", m.r.IntN(12)))
		if _, err := os.Lstat(path); err != nil {
			return path
		}
		if m.r.IntN(8) == 0 {
			path = filepath.Join(m.pick(m.dirs), fmt.Sprintf("n%d", m.r.IntN(1_000_000)))
			if _, err := os.Lstat(path); err != nil {
				return path
			}
		}
	}
}

func (m *mutator) change() {
	changes := []func(){
		m.create, m.create, m.create, m.mkdir, m.write, m.write, m.write, m.resize, m.link, m.link, m.rename, m.remove, m.remove,
		m.replace, m.attributes, m.xattr, m.special, m.punch, m.copy,
	}
	changes[m.r.IntN(len(changes))]()
}

func (m *mutator) size() int {
	switch m.r.IntN(10) {
	case 0:
		return 0
	case 1:
		return 1<<20 + m.r.IntN(2<<20)
	default:
		return m.r.IntN(20_000)
	}
}

func (m *mutator) create() {
	m.ok(os.WriteFile(m.fresh(), Random(m.r.Uint64N(50), m.size()), 0o644))
}

func (m *mutator) mkdir() { m.ok(os.Mkdir(m.fresh(), 0o755)) }

func (m *mutator) write() {
	if len(m.files) == 0 {
		return
	}
	f, err := os.OpenFile(m.pick(m.files), os.O_WRONLY, 0)
	m.ok(err)
	_, err = f.WriteAt(Random(m.r.Uint64(), 1+m.r.IntN(5000)), m.r.Int64N(1<<20))
	m.ok(err)
	m.ok(f.Close())
}

func (m *mutator) resize() {
	if len(m.files) > 0 {
		m.ok(os.Truncate(m.pick(m.files), m.r.Int64N(3<<20)))
	}
}

func (m *mutator) link() {
	if all := append(m.files, m.others...); len(all) > 0 {
		m.ok(os.Link(m.pick(all), m.fresh()))
	}
}

func (m *mutator) rename() {
	if all := append(m.files, m.others...); len(all) > 0 {
		m.ok(os.Rename(m.pick(all), m.fresh()))
	}
}

// copy makes content appear under another name.
func (m *mutator) copy() {
	if len(m.files) == 0 {
		return
	}
	content, err := os.ReadFile(m.pick(m.files))
	m.ok(err)
	m.ok(os.WriteFile(m.fresh(), content, 0o600)) //nolint:gosec // below the root of a test
}

func (m *mutator) remove() {
	all := append(append(m.files, m.others...), m.dirs[1:]...)
	if len(all) > 0 {
		m.ok(os.RemoveAll(m.pick(all)))
	}
}

// replace puts something of another kind at the path of something.
func (m *mutator) replace() {
	all := append(append(m.files, m.others...), m.dirs[1:]...)
	if len(all) == 0 {
		return
	}
	path := m.pick(all)
	m.ok(os.RemoveAll(path))
	switch m.r.IntN(4) {
	case 0:
		m.ok(os.Mkdir(path, 0o700))
	case 1:
		m.ok(os.WriteFile(path, Random(m.r.Uint64N(50), m.size()), 0o600))
	case 2:
		m.ok(os.Symlink(fmt.Sprint(m.r.IntN(5)), path))
	default:
		m.ok(unix.Mkfifo(path, 0o600))
	}
}

func (m *mutator) attributes() {
	all := append(append(m.files, m.others...), m.dirs...)
	path := m.pick(all)
	m.ok(os.Lchown(path, m.r.IntN(3), m.r.IntN(3)))
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		m.ok(unix.Chmod(path, m.r.Uint32N(0o10000)|0o400))
	}
	if m.r.IntN(2) == 0 {
		times := []unix.Timespec{{Sec: m.r.Int64N(2_000_000_000), Nsec: m.r.Int64N(1_000_000_000)}, {Sec: m.r.Int64N(2_000_000_000), Nsec: m.r.Int64N(1_000_000_000)}}
		m.ok(unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW))
	}
}

func (m *mutator) xattr() {
	path := m.pick(append(m.files, m.dirs...))
	name := fmt.Sprintf("user.%d", m.r.IntN(3))
	if m.r.IntN(3) == 0 {
		_ = unix.Removexattr(path, name) // it may not have it
		return
	}
	m.ok(unix.Setxattr(path, name, []byte(fmt.Sprint(m.r.IntN(100))), 0))
}

func (m *mutator) special() {
	path := m.fresh()
	switch m.r.IntN(4) {
	case 0:
		m.ok(os.Symlink(fmt.Sprint(m.r.IntN(5)), path))
	case 1:
		m.ok(unix.Mkfifo(path, 0o600))
	case 2:
		m.ok(unix.Mknod(path, unix.S_IFSOCK|0o600, 0))
	default:
		m.ok(unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, m.r.Uint32N(9)))))
	}
}

func (m *mutator) punch() {
	if len(m.files) == 0 {
		return
	}
	f, err := os.OpenFile(m.pick(m.files), os.O_WRONLY, 0)
	m.ok(err)
	m.ok(unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 4096*m.r.Int64N(200), 4096*(1+m.r.Int64N(200))))
	m.ok(f.Close())
}
