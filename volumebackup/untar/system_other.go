//go:build !linux

package untar

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// errNotDirectory is the error of a path that goes on behind a file.
var errNotDirectory error = syscall.ENOTDIR

// isForbidden tells whether the system does not allow something here.
func isForbidden(err error) bool { return errors.Is(err, errors.ErrUnsupported) }

func makeNode(*os.File, string, *tar.Header) error { return errors.ErrUnsupported }

func chownAt(*os.File, string, int, int) error { return errors.ErrUnsupported }

func chmodAt(*os.File, string, fs.FileMode) error { return errors.ErrUnsupported }

// setTimeAt leaves the time of a symlink, which says nothing here, as it is.
func setTimeAt(*os.File, string, time.Time) error { return nil }

func setXattr(*os.File, string, string) error { return errors.ErrUnsupported }

func setXattrAt(*os.File, string, string, string) error { return errors.ErrUnsupported }
