package untar

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Reporter is told what happens.
type Reporter struct {
	Warn func(path, message string) // of an entry that could not be made exactly
}

// Unpack makes what a tar holds.
func (d *Destination) Unpack(ctx context.Context, in io.Reader, r Reporter) error {
	u := &unpacking{Destination: d, Reporter: r, tar: tar.NewReader(in), user: os.Geteuid(), over: func() error { return context.Cause(ctx) }}
	for {
		if err := u.over(); err != nil {
			return err
		}
		h, err := u.tar.Next()
		if errors.Is(err, io.EOF) && u.hasBegun {
			return u.finish()
		}
		if errors.Is(err, io.EOF) {
			return errors.New("unpack tar: it is empty")
		}
		if err != nil {
			return fmt.Errorf("unpack tar: %w", err)
		}
		if err := u.unpack(h); err != nil {
			return err
		}
	}
}

// unpacking is one call of Unpack.
type unpacking struct {
	*Destination
	Reporter
	tar  *tar.Reader
	user int          // who makes the files
	over func() error // why it is not to go on

	hasBegun    bool
	base        string // the name of the first entry in the tar
	at          string // what it is called in the root
	directories []directory
}

// directory is one whose attributes are set at last: making something in it moves its time.
type directory struct {
	path   string
	header *tar.Header
}

func (u *unpacking) unpack(h *tar.Header) error {
	name, err := clean(h.Name)
	if err != nil {
		return err
	}
	if !u.hasBegun {
		if err := u.begin(h, name); err != nil {
			return err
		}
	}
	at, err := u.locate(name)
	if err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		err = u.directory(h, at)
	} else {
		err = u.file(h, at)
	}
	return u.described(err, at)
}

// begin decides by the first entry where everything comes.
func (u *unpacking) begin(h *tar.Header, name string) error {
	at, err := u.place(name, h.Typeflag == tar.TypeDir)
	u.hasBegun, u.base, u.at = true, name, at
	return err
}

// described says where something went wrong.
func (u *unpacking) described(err error, at string) error {
	if _, isDestination := errors.AsType[*DestinationError](err); err == nil || isDestination {
		return err
	}
	return fmt.Errorf("write %s: %w", u.shown(at), reason(err))
}

// shown is a path in the root, for people.
func (u *unpacking) shown(at string) string {
	return filepath.Join(u.root.Name(), filepath.FromSlash(at))
}

// reason is an error without the path that it is about, which is named already.
func reason(err error) error {
	if about, ok := errors.AsType[*fs.PathError](err); ok {
		return about.Err
	}
	return err
}

// clean is the name of an entry without what means nothing. A name that leads upwards is refused.
func clean(name string) (string, error) {
	parts := strings.Split(name, "/")
	if slices.Contains(parts, "..") || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("unpack tar: it has an entry %q, which leads out of it", name)
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" || part == "." })
	return strings.Join(parts, "/"), nil
}

// locate is where an entry comes, by its name in the tar.
func (u *unpacking) locate(name string) (string, error) {
	if name == u.base {
		return u.at, nil
	}
	rest, isBelow := strings.CutPrefix(name, u.base+"/")
	if u.base == "" {
		rest, isBelow = name, true
	}
	if !isBelow {
		return "", fmt.Errorf("unpack tar: it has an entry %q, which is not in %q", name, u.base)
	}
	return path.Join(u.at, rest), nil
}

func (u *unpacking) directory(h *tar.Header, at string) error {
	if at == "." { // the user's own
		return nil
	}
	info, err := u.root.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		const private = 0o700 // until it is finished
		err = u.root.Mkdir(at, private)
	case err == nil && !info.IsDir():
		return &DestinationError{u.shown(at), "a directory cannot take the place of a file"}
	}
	if err != nil {
		return err
	}
	u.directories = append(u.directories, directory{at, h})
	return nil
}

// finish sets the attributes of directories, the inner ones first.
func (u *unpacking) finish() error {
	for _, d := range slices.Backward(u.directories) {
		f, err := u.root.Open(d.path)
		if err == nil {
			err = errors.Join(u.setAttributes(f, d.header, d.path), f.Close())
		}
		if err == nil {
			err = u.setTimes(d.header, d.path)
		}
		if err != nil {
			return u.described(err, d.path)
		}
	}
	return nil
}

// isRoot tells whether whoever makes the files may give them away.
func (u *unpacking) isRoot() bool { return u.user == 0 }

// warn reports what could not be made exactly.
func (u *unpacking) warn(at, message string) {
	u.Warn(u.shown(at), message)
}
