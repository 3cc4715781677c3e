package extract

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// MaxContent is the most of one file that [Extractor.Content] reads.
const MaxContent = 1 << 20

// File is the content of one path.
type File struct {
	IsThere bool
	Content []byte // of a symlink: what it says
}

// TooLargeError says that a file is larger than [MaxContent].
type TooLargeError struct {
	Path  string
	Bytes int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%q has %d bytes: the limit is %d", e.Path, e.Bytes, MaxContent)
}

// Unwrap gives the error its class.
func (e *TooLargeError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// NoFileError says that a path is neither a regular file nor a symlink.
type NoFileError struct{ Path string }

func (e *NoFileError) Error() string { return fmt.Sprintf("%q is no regular file", e.Path) }

// Unwrap gives the error its class.
func (e *NoFileError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// Content reads the file that a source names.
func (x *Extractor) Content(ctx context.Context, source Source, p plan.Progress) (File, error) {
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := x.Tar(ctx, source, out, p)
		_ = out.CloseWithError(err) // a pipe takes any error
		written <- err
	}()
	f, err := readFile(in, source.Path)
	_ = in.CloseWithError(err)
	failed := <-written
	if _, none := errors.AsType[*NoPathError](failed); none {
		return File{}, nil
	}
	if err == nil || failed != nil && !isRefused(err) {
		err = failed
	}
	return f, err
}

// isRefused tells whether the tar was read no further, because of what it holds.
func isRefused(err error) bool {
	_, large := errors.AsType[*TooLargeError](err)
	_, other := errors.AsType[*NoFileError](err)
	return large || other
}

// Live reads a file of a container as it is now. Whatever is mounted in the container is a part of it.
func (x *Extractor) Live(ctx context.Context, container, path string) (File, error) {
	files, _, err := x.docker.CopyFromContainer(ctx, container, path)
	if cerrdefs.IsNotFound(err) {
		return File{}, nil
	}
	if err != nil {
		return File{}, fmt.Errorf("copy %s from container %s: %w", path, container, err)
	}
	f, err := readFile(files, path)
	return f, errors.Join(err, files.Close())
}

// readFile reads the only file in a tar, and the tar to its end: the end tells whether it was whole.
func readFile(in io.Reader, path string) (File, error) {
	files := tar.NewReader(in)
	h, err := files.Next()
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", path, err)
	}
	f := File{IsThere: true}
	switch {
	case h.Typeflag == tar.TypeSymlink:
		f.Content = []byte(h.Linkname + "\n")
	case h.Typeflag != tar.TypeReg:
		return File{}, &NoFileError{Path: path}
	case h.Size > MaxContent:
		return File{}, &TooLargeError{Path: path, Bytes: h.Size}
	default:
		if f.Content, err = io.ReadAll(files); err != nil {
			return File{}, fmt.Errorf("read %s: %w", path, err)
		}
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return File{}, fmt.Errorf("read %s: %w", path, err)
	}
	return f, nil
}
