//go:build linux

package archive

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// place keeps the directory open that was used last: most entries come directory by directory. Only one goroutine may
// use it.
type place struct {
	tree *tree
	path string
	fd   int // -1 while none is open
}

func newPlace(t *tree) place { return place{tree: t, fd: -1} }

func (p *place) close() {
	if p.fd >= 0 {
		closeFD(p.fd)
		p.fd = -1
	}
}

// holder opens the directory that holds an entry. For the root, that is the root itself.
func (p *place) holder(path string) (dir int, name string, err error) {
	if path == "" {
		return p.tree.fd(), ".", nil
	}
	parent := manifest.Parent(path)
	if p.fd < 0 || p.path != parent {
		fd, err := p.open(parent)
		if err != nil {
			return -1, "", err
		}
		p.close()
		p.fd, p.path = fd, parent
	}
	return p.fd, path[strings.LastIndexByte(path, '/')+1:], nil
}

// open opens a directory: from the one that is open if it lies beneath that, else from the root.
func (p *place) open(path string) (int, error) {
	if p.fd < 0 || !isIn(path, p.path) {
		return p.tree.open(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	}
	return p.tree.openFrom(p.fd, path[len(p.path)+1:], unix.O_PATH|unix.O_DIRECTORY, 0)
}

// remove removes a file or an empty directory.
func (p *place) remove(path string) error {
	dir, name, err := p.holder(path)
	if err != nil {
		return err
	}
	err = unix.Unlinkat(dir, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		if rmdir := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); !errors.Is(rmdir, unix.ENOTDIR) {
			err = rmdir
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// clear removes everything in the tree.
func (t *tree) clear(ctx context.Context) error {
	var paths pathList
	err := t.walk(ctx, func(f *found) error {
		if f.path != "" {
			paths.add(f.path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	at := newPlace(t)
	defer at.close()
	return paths.backward(func(path string) error {
		if err := at.remove(path); err != nil {
			return pathError("delete", path, err)
		}
		return nil
	})
}
