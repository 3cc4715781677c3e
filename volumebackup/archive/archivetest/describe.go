//go:build linux

// Package archivetest has what tests of volume archives share: trees with
// everything that a volume can hold, and an exact description to compare them by.
package archivetest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
)

// Describe lists every entry below root, one a line, with everything that a
// restore has to bring back: kind, mode, owner, mtime, link group, holes, xattrs, content.
func Describe(t testing.TB, root string) []string {
	t.Helper()
	d := describer{t: t, groups: map[uint64]string{}}
	d.visit(root, "")
	return d.lines
}

type describer struct {
	t      testing.TB
	groups map[uint64]string // first name of each file that has several
	lines  []string
}

// visit describes what is at path, and what is in it. The path goes through a descriptor of
// the directory, so that names may be longer than the kernel allows at once.
func (d *describer) visit(path, name string) {
	d.t.Helper()
	var st unix.Stat_t
	assert.NilError(d.t, unix.Lstat(path, &st))
	d.lines = append(d.lines, d.describe(path, name, &st))
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	dir, err := os.Open(path)
	assert.NilError(d.t, err)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	assert.NilError(d.t, err)
	slices.Sort(names)
	for _, n := range names {
		d.visit(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), n), name+"/"+n)
	}
}

func (d *describer) describe(path, name string, st *unix.Stat_t) string {
	d.t.Helper()
	line := fmt.Sprintf("%q mode=%o owner=%d:%d mtime=%d.%09d", name, st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec)
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if _, ok := d.groups[st.Ino]; !ok {
			d.groups[st.Ino] = name
		}
		line += fmt.Sprintf(" links=%d of %q", st.Nlink, d.groups[st.Ino])
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		line += d.content(path, st)
	case unix.S_IFLNK:
		target, err := os.Readlink(path)
		assert.NilError(d.t, err)
		line += fmt.Sprintf(" target=%q", target)
	case unix.S_IFBLK, unix.S_IFCHR:
		line += fmt.Sprintf(" device=%d", st.Rdev)
	}
	return line + d.xattrs(path)
}

func (d *describer) content(path string, st *unix.Stat_t) string {
	d.t.Helper()
	f, err := os.Open(path)
	assert.NilError(d.t, err)
	defer f.Close()
	var holes []string
	for at := int64(0); at < st.Size; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err != nil {
			data = st.Size
		}
		if data > at {
			holes = append(holes, fmt.Sprintf("%d+%d", at, data-at))
		}
		if data >= st.Size {
			break
		}
		at, err = unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
		assert.NilError(d.t, err)
	}
	sum := ""
	if st.Size <= 64<<20 { // larger ones are holes
		content, err := os.ReadFile(path)
		assert.NilError(d.t, err)
		sum = fmt.Sprintf(" sha256=%x", sha256.Sum256(content))
	}
	return fmt.Sprintf(" size=%d holes=%v%s", st.Size, holes, sum)
}

func (d *describer) xattrs(path string) string {
	d.t.Helper()
	buffer := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buffer)
	assert.NilError(d.t, err)
	var all []string
	for name := range strings.SplitSeq(string(buffer[:n]), "\x00") {
		if name == "" {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(path, name, value)
		assert.NilError(d.t, err)
		all = append(all, fmt.Sprintf(" %s=%q", name, value[:n]))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// Equal fails the test if two descriptions differ, and names the lines that do.
func Equal(t testing.TB, got, want []string) {
	t.Helper()
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("is     %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("is not %s", line)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}
