// Package changes finds out in what two trees of files differ. Each is a sequence of the entries of a manifest, in the
// order of a manifest. The package opens nothing.
//
// # What counts
//
//   - An entry whose kind, content, link target, device or, unless it is a directory, time differs is modified. Of what
//     is stored, holes count as content.
//   - An entry of which only the mode, the owner or an xattr differs has other permissions.
//   - The times of directories do not count: they follow from what is in them.
//   - A further name of a file stands for the file: it changes whenever the file does. It also changes when it becomes a
//     name of another file.
//
// The size of an entry is that of a regular file. A further name has none: the bytes of a file count at its first name,
// also if that name goes and the file stays.
package changes

import (
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Type says what happened to an entry.
type Type string

// The types.
const (
	Created            Type = "created"
	Modified           Type = "modified"
	Deleted            Type = "deleted"
	PermissionsChanged Type = "permissions_changed"
)

// Change is what happened to one entry.
type Change struct {
	Path      string
	Type      Type
	SizeDelta int64
}

// Inverted is the change that takes this one back.
func (c Change) Inverted() Change {
	switch c.Type {
	case Created:
		c.Type = Deleted
	case Deleted:
		c.Type = Created
	case Modified, PermissionsChanged:
	}
	c.SizeDelta = -c.SizeDelta
	return c
}

// Tree is a sequence of entries.
type Tree interface {
	// Next returns the next entry. After the last one it returns io.EOF.
	Next() (*manifest.Entry, error)
	// Read adds the content to an entry of a regular file that came without. It is called at most once for each.
	Read(e *manifest.Entry) error
}

// size is how many bytes an entry has for itself.
func size(e *manifest.Entry) int64 {
	if e.Kind == manifest.Regular {
		return e.Size
	}
	return 0
}
