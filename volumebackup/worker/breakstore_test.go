//go:build linux

package worker

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
)

// damage changes something in the store, and says what.
func (b *breakable) damage() string {
	b.t.Helper()
	if b.r.IntN(20) == 0 {
		return b.relabel()
	}
	files := b.files()
	name := files[b.r.IntN(len(files))]
	path := filepath.Join(b.store, name)
	content, err := os.ReadFile(path)
	assert.NilError(b.t, err)
	did := "flipped bits of " + name
	switch b.r.IntN(10) {
	case 0:
		did, content = "cut "+name, content[:b.r.IntN(len(content)+1)]
	case 1:
		other := files[b.r.IntN(len(files))]
		did = fmt.Sprintf("exchanged %s and %s", name, other)
		swapped, err := os.ReadFile(filepath.Join(b.store, other))
		assert.NilError(b.t, err)
		b.put(filepath.Join(b.store, other), content)
		content = swapped
	case 2:
		kind := filepath.Ext(name)
		other := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return filepath.Ext(f) != kind })
		from := other[b.r.IntN(len(other))]
		did = fmt.Sprintf("put %s over %s", from, name)
		content, err = os.ReadFile(filepath.Join(b.store, from))
		assert.NilError(b.t, err)
	case 3:
		assert.NilError(b.t, os.Remove(path))
		return "removed " + name
	case 4:
		dir := filepath.Dir(name)
		if dir == "." {
			dir = "volumes"
		}
		assert.NilError(b.t, os.RemoveAll(filepath.Join(b.store, dir)))
		return "removed directory " + dir
	case 5, 6:
		name, content = b.earlier()
		did, path = "brought back an earlier "+name, filepath.Join(b.store, name)
	case 7:
		return b.otherKind(name, path)
	default:
		for range 1 + b.r.IntN(3) {
			if len(content) > 0 {
				content[b.r.IntN(len(content))] ^= 1 << b.r.IntN(8)
			}
		}
	}
	b.put(path, content)
	return did
}

// relabel flips a bit of what a label says of an archive, until heal.
func (b *breakable) relabel() string {
	b.t.Helper()
	s, n := b.taken[b.r.IntN(len(b.taken))], b.r.IntN(len(b.mounts))
	root, err := hex.DecodeString(s.roots[n])
	assert.NilError(b.t, err)
	root[b.r.IntN(len(root))] ^= 1 << b.r.IntN(8)
	before := s.roots
	s.roots = maps.Clone(before)
	s.roots[n] = hex.EncodeToString(root)
	b.undo = func() { s.roots = before }
	return fmt.Sprintf("flipped a bit in the label of %s/%d", s.id, n)
}

// put makes a file of its own: a head must not change along with the manifest that it is a link to.
func (b *breakable) put(path string, content []byte) {
	b.t.Helper()
	assert.NilError(b.t, os.MkdirAll(filepath.Dir(path), 0o700))
	assert.NilError(b.t, os.RemoveAll(path))
	assert.NilError(b.t, os.WriteFile(path, content, 0o600))
}

// earlier picks a version of a file that is not there any more.
func (b *breakable) earlier() (name string, content []byte) {
	b.t.Helper()
	names := slices.Sorted(maps.Keys(b.versions))
	for {
		name = names[b.r.IntN(len(names))]
		all := b.versions[name]
		now, err := os.ReadFile(filepath.Join(b.store, name))
		if i := b.r.IntN(len(all)); err != nil || !bytes.Equal(all[i], now) {
			return name, all[i]
		}
	}
}

// otherKind puts something else where a file was.
func (b *breakable) otherKind(name, path string) string {
	b.t.Helper()
	assert.NilError(b.t, os.Remove(path))
	switch b.r.IntN(3) {
	case 0:
		assert.NilError(b.t, os.Mkdir(path, 0o700))
		return "a directory is at " + name
	case 1:
		assert.NilError(b.t, os.Symlink("/etc/passwd", path))
		return "a symlink is at " + name
	default:
		assert.NilError(b.t, unix.Mkfifo(path, 0o600))
		return "a FIFO is at " + name
	}
}
