//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// ExtractOptions say which part of an archive comes into a tar.
type ExtractOptions struct {
	Ref
	// Path is the entry, relative to the root of the volume, which is "". What is in a directory comes along.
	Path string
	// Directory says that the entry has to be a directory, or a symlink, which is followed.
	Directory bool
	// Follow says that the entry is followed if it is a symlink.
	Follow bool
	// Look says that nothing is written: it is only asked what is there.
	Look bool
	// Name is what the entry is called in the tar.
	Name string
}

// ErrNoEntry says that an archive has nothing at the path that was asked for.
var ErrNoEntry = errors.New("the archive has no such entry")

// Extract writes a part of an archive as a tar. It checks every piece, and the whole list of files at the end: if it fails,
// what was written is not to be trusted.
//
// It follows no symlink, because one may lead out of the volume. If there is one on the way of the path, or at its end and
// it is to be followed, Extract returns it and has written nothing.
func Extract(ctx context.Context, s *store.Store, o ExtractOptions, out io.Writer, reporter Reporter, counter *Counter) (link *manifest.Entry, err error) {
	unlock, err := s.Share(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	x := &extraction{
		ExtractOptions: o, store: s, counter: counter, warner: warner{reporter: reporter},
		out: newTarStream(out), names: map[string]string{}, waiting: map[string][]string{},
	}
	if link, err := x.write(ctx); err != nil || link != nil || o.Look {
		return link, err
	}
	if err := x.writeOthers(ctx); err != nil {
		return nil, err
	}
	return nil, x.out.close()
}

// extraction is one call of Extract.
type extraction struct {
	ExtractOptions
	store   *store.Store
	counter *Counter
	warner  warner
	out     *tarStream
	buffer  store.Buffer

	// names are the names in the tar of files that have further names, by their paths.
	names map[string]string
	// waiting are names in the tar of files whose first name, by which they are listed here, is not asked for.
	waiting map[string][]string
}

// write writes the entry at the path and what is below it. If it finds a symlink on the way, it returns that instead. It
// reads the list of files to its end in any case: only then it is known to be the one that was asked for.
func (x *extraction) write(ctx context.Context) (link *manifest.Entry, err error) {
	m, err := openArchive(x.store, x.Ref)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	found := false
	err = m.Each(func(e *manifest.Entry) error {
		switch isOnTheWay, isEntry := isBelow(x.Path, e.Path), e.Path == x.Path; {
		case link != nil:
			return context.Cause(ctx)
		case e.Kind == manifest.Symlink && (isOnTheWay || isEntry && (x.Directory || x.Follow)):
			is := *e
			link = &is
		case isEntry && x.Directory && e.Kind != manifest.Directory:
			return fmt.Errorf("%q is not a directory: %w", x.Path, errdefs.ErrInvalidArgument)
		case isEntry && x.Look:
			found = true
		case !x.Look && (isEntry || isBelow(e.Path, x.Path)):
			found = true
			return x.add(ctx, e, x.nameOf(e.Path))
		case !found && manifest.Compare(e.Path, x.Path) > 0:
			return ErrNoEntry
		}
		return nil
	})
	if err == nil && link == nil && !found {
		err = ErrNoEntry
	}
	return link, err
}

// isBelow tells whether a path is of something in a directory.
func isBelow(p, directory string) bool {
	if directory == "" {
		return p != ""
	}
	return len(p) > len(directory) && p[len(directory)] == '/' && p[:len(directory)] == directory
}

// nameOf is what an entry is called in the tar.
func (x *extraction) nameOf(p string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(p, x.Path), "/")
	if rest == "" {
		return x.Name
	}
	return strings.TrimSuffix(x.Name, "/") + "/" + rest
}

// add writes an entry.
func (x *extraction) add(ctx context.Context, e *manifest.Entry, name string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	x.counter.Files.Add(1)
	if e.Kind == manifest.HardLink {
		return x.addLink(e, name)
	}
	if e.Kind == manifest.Socket {
		x.warner.warn(e.Path, "left out: a tar cannot hold a socket")
		return nil
	}
	if e.Shared {
		x.names[e.Path] = name
	}
	x.dropXattrs(e)
	return tarError(e.Path, x.addContent(ctx, e, name))
}

func (x *extraction) addLink(e *manifest.Entry, name string) error {
	if first, written := x.names[e.Target]; written {
		return tarError(e.Path, x.out.link(name, first))
	}
	if isBelow(e.Target, x.Path) { // a socket, which was left out
		x.warner.warn(e.Path, "left out: a tar cannot hold a socket")
		return nil
	}
	x.waiting[e.Target] = append(x.waiting[e.Target], name)
	return nil
}

// tarError says which entry could not be written. Damage says that itself.
func tarError(p string, err error) error {
	if err == nil || isDamage(err) {
		return err
	}
	return pathError("write to tar", p, err)
}

// dropXattrs takes from an entry the extended attributes that a tar has no room for.
func (x *extraction) dropXattrs(e *manifest.Entry) {
	size := 0
	kept := e.Xattrs[:0:0]
	for _, a := range e.Xattrs {
		if size += len(a.Name) + len(a.Value) + maxRecordFrame; size > maxTarXattrs || !isTarXattr(a.Name) {
			x.warner.warn(e.Path, fmt.Sprintf("xattr %q is left out: a tar cannot hold it", a.Name))
			continue
		}
		kept = append(kept, a)
	}
	e.Xattrs = kept
}

func (x *extraction) addContent(ctx context.Context, e *manifest.Entry, name string) error {
	if err := x.out.header(e, name); err != nil {
		return err
	}
	at := int64(0)
	for i := range e.Pieces {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		p := &e.Pieces[i]
		content, err := x.store.ReadPiece(p, e.Path, &x.buffer)
		if err != nil {
			return err
		}
		if err := x.out.data(at, p.Offset, content); err != nil {
			return err
		}
		at = p.End()
		x.counter.Bytes.Add(int64(len(content)))
	}
	return x.out.endEntry(at)
}

// writeOthers writes files whose first name is not in the part, under the names that are. The list of files is read again
// for that: only now it is known which they are.
func (x *extraction) writeOthers(ctx context.Context) error {
	if len(x.waiting) == 0 {
		return nil
	}
	m, err := openArchive(x.store, x.Ref)
	if err != nil {
		return err
	}
	defer m.Close()
	return m.Each(func(e *manifest.Entry) error {
		names := x.waiting[e.Path]
		if len(names) == 0 {
			return nil
		}
		if err := x.add(ctx, e, names[0]); err != nil {
			return err
		}
		for _, name := range names[1:] {
			if err := x.addLink(&manifest.Entry{Path: e.Path, Target: e.Path}, name); err != nil {
				return err
			}
		}
		return nil
	})
}
