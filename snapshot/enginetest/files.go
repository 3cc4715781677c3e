package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// FakePath is the only file in a container's root filesystem. Directories and symlinks are there if the container's
// Files are a tar that has them.
const FakePath = "/files"

// CopyFromContainer returns the container's files, if the path is [FakePath], a symlink, or what is in a directory ("DIRECTORY/.").
func (f *Docker) CopyFromContainer(ctx context.Context, id, at string) (files io.ReadCloser, stat container.PathStat, err error) {
	err = f.withContainer(ctx, "CopyFromContainer", id, func(c *FakeContainer) error {
		content := c.Files
		dir, isContent := strings.CutSuffix(at, "/.")
		switch {
		case isContent && c.entry(path.Join("/", dir)) != nil:
			content = c.below(dir)
		case at != FakePath:
			h := c.entry(at)
			if h == nil || h.Typeflag != tar.TypeSymlink {
				return fmt.Errorf("could not find the file %s in container %s: %w", at, c.Name, cerrdefs.ErrNotFound)
			}
			var only bytes.Buffer
			w := tar.NewWriter(&only)
			h.Name = path.Base(h.Name)
			if err := w.WriteHeader(h); err != nil {
				return err
			}
			if err := w.Close(); err != nil {
				return err
			}
			content = only.String()
		}
		files = io.NopCloser(strings.NewReader(content))
		return nil
	})
	return files, stat, err
}

// below is a tar of all that is below a directory, without what files hold.
func (c *FakeContainer) below(dir string) string {
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	for r := tar.NewReader(strings.NewReader(c.Files)); ; {
		h, err := r.Next()
		if err != nil {
			_ = w.Close() // a buffer has no errors
			return all.String()
		}
		if rest, isBelow := strings.CutPrefix(path.Clean("/"+h.Name), dir+"/"); isBelow {
			h.Name, h.Size = "./"+rest, 0
			_ = w.WriteHeader(h)
		}
	}
}

// ContainerStatPath tells what is at a path. It follows no symlink, also not on the way.
func (f *Docker) ContainerStatPath(ctx context.Context, id, at string) (stat container.PathStat, err error) {
	err = f.withContainer(ctx, "ContainerStatPath", id, func(c *FakeContainer) error {
		stat.Name = path.Base(at)
		if at == FakePath {
			return nil
		}
		h := c.entry(at)
		if h == nil {
			return fmt.Errorf("could not find the file %s in container %s: %w", at, c.Name, cerrdefs.ErrNotFound)
		}
		stat.Mode = os.ModeDir
		if h.Typeflag == tar.TypeSymlink {
			stat.Mode = os.ModeSymlink
		}
		return nil
	})
	return stat, err
}

// entry is the directory or the symlink at a path of a container whose files are a tar, or nil.
func (c *FakeContainer) entry(at string) *tar.Header {
	for r := tar.NewReader(strings.NewReader(c.Files)); ; {
		h, err := r.Next()
		if err != nil {
			return nil
		}
		switch name := path.Clean("/" + h.Name); {
		case name == at && h.Typeflag != tar.TypeReg:
			return h
		case strings.HasPrefix(name, strings.TrimSuffix(at, "/")+"/"):
			return &tar.Header{Name: at, Typeflag: tar.TypeDir}
		}
	}
}
