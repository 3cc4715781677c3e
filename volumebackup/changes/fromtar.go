package changes

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// FromTar writes to out the manifest of a root filesystem that an engine exports as a tar. Engines keep times to the
// second, so the manifest has no parts of one. It leaves out what the engine puts into every container.
func FromTar(in io.Reader, out io.Writer) error {
	r := tarReader{list: NewRootList()}
	if err := EachOfTar(in, r.add); err != nil {
		return fmt.Errorf("read root filesystem: %w", err)
	}
	return r.list.Write(out)
}

// EachOfTar calls visit with every entry of a root filesystem that an engine exports as a tar, with its path below the root
// and its content. It leaves out what the engine puts into every container.
func EachOfTar(in io.Reader, visit func(name string, header *tar.Header, content io.Reader) error) error {
	entries := tar.NewReader(in)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := RelativeOfTar(header.Name)
		if IsOfEngine(name) {
			continue
		}
		if err := visit(name, header, entries); err != nil {
			return err
		}
	}
}

// RelativeOfTar is a name of a tar as a path below the root.
func RelativeOfTar(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// tarReader collects the entries of a tar.
type tarReader struct {
	list   *RootList
	buffer []byte
}

// kinds are those of the entries that a tar can have.
var kinds = map[byte]manifest.Kind{
	tar.TypeDir: manifest.Directory, tar.TypeReg: manifest.Regular, tar.TypeSymlink: manifest.Symlink, tar.TypeFifo: manifest.FIFO,
	tar.TypeBlock: manifest.BlockDevice, tar.TypeChar: manifest.CharacterDevice,
}

func (r *tarReader) add(name string, header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeLink {
		r.list.Link(name, RelativeOfTar(header.Linkname))
		return nil
	}
	kind, known := kinds[header.Typeflag]
	if !known {
		return nil
	}
	e := &manifest.Entry{Path: name, Kind: kind, Attributes: manifest.Attributes{
		Mode: uint32(header.Mode) & 0o7777, UID: uint32(header.Uid), GID: uint32(header.Gid),
		Modified: manifest.Timestamp{Sec: header.ModTime.Unix()}, Xattrs: xattrsOf(header),
	}}
	switch kind {
	case manifest.Symlink:
		e.Target = header.Linkname
	case manifest.BlockDevice, manifest.CharacterDevice:
		e.Major, e.Minor = uint32(header.Devmajor), uint32(header.Devminor)
	case manifest.Regular:
		e.Size = header.Size
		if err := r.hash(e, content); err != nil {
			return err
		}
	}
	r.list.Add(e)
	return nil
}

func xattrsOf(header *tar.Header) []manifest.Xattr {
	var all []manifest.Xattr
	for key, value := range header.PAXRecords {
		if name, isXattr := strings.CutPrefix(key, "SCHILY.xattr."); isXattr {
			all = append(all, manifest.Xattr{Name: name, Value: value})
		}
	}
	slices.SortFunc(all, func(a, b manifest.Xattr) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// hash finds the sums of the pieces of a file.
func (r *tarReader) hash(e *manifest.Entry, content io.Reader) error {
	if r.buffer == nil {
		r.buffer = make([]byte, manifest.MaxPiece)
	}
	for at := int64(0); at < e.Size; {
		piece := r.buffer[:min(e.Size-at, int64(len(r.buffer)))]
		if _, err := io.ReadFull(content, piece); err != nil {
			return err
		}
		e.Pieces = append(e.Pieces, manifest.Piece{Offset: at, Length: uint32(len(piece)), Sum: sha256.Sum256(piece)})
		at += int64(len(piece))
	}
	return nil
}
