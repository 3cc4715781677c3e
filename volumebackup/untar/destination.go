package untar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Destination is where a tar is to be unpacked. Close frees it.
type Destination struct {
	given string // as the user wrote it
	root  *os.Root
	// name is what the first entry of the tar becomes in the root; empty: it keeps its name, in the directory given.
	name string
	// mustBeDirectory says that the user wrote a directory, which is not there.
	mustBeDirectory bool
}

// DestinationError says why a tar cannot be unpacked to where it was to come.
type DestinationError struct {
	Path   string
	Reason string
}

func (e *DestinationError) Error() string {
	return fmt.Sprintf("cannot copy to %s: %s", e.Path, e.Reason)
}

// Open looks at a destination: a directory, a file that is to be replaced, or a new name in a directory.
func Open(given string) (*Destination, error) {
	d := &Destination{given: given}
	isDirectory := given != "" && os.IsPathSeparator(given[len(given)-1]) || strings.HasSuffix(given, string(filepath.Separator)+".")
	info, err := os.Stat(given)
	switch {
	case err == nil && info.IsDir():
		d.root, err = os.OpenRoot(given)
		return d, wrong(given, err)
	case err == nil && isDirectory, errors.Is(err, errNotDirectory):
		return nil, &DestinationError{given, "it is not a directory"}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, wrong(given, err)
	}
	d.mustBeDirectory = isDirectory
	clean := filepath.Clean(given)
	if resolved, err := filepath.EvalSymlinks(clean); err == nil {
		clean = resolved // the file that a symlink leads to is replaced, not the symlink
	}
	d.name = filepath.Base(clean)
	d.root, err = os.OpenRoot(filepath.Dir(clean))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &DestinationError{given, fmt.Sprintf("there is no directory %s", filepath.Dir(clean))}
	}
	return d, wrong(given, err)
}

// Close frees what the destination takes.
func (d *Destination) Close() error { return d.root.Close() }

// wrong says what could not be opened.
func wrong(given string, err error) error {
	if err == nil {
		return nil
	}
	return &DestinationError{given, reason(err).Error()}
}

// place is where the first entry of a tar comes.
func (d *Destination) place(base string, isDirectory bool) (string, error) {
	switch {
	case d.mustBeDirectory && !isDirectory:
		return "", &DestinationError{d.given, "there is no such directory"}
	case d.name != "":
		return d.name, nil
	case base == "":
		return ".", nil
	}
	return base, nil
}
