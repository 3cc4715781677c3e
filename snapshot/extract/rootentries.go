package extract

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// RootEntries calls visit with every entry of the root filesystem of a snapshot, as the engine exports it: in the order
// of its tar, with times to the second. What the engine itself puts into every container is left out. All of it comes
// through the connection to the engine; none is kept in memory.
func (x *Extractor) RootEntries(ctx context.Context, s catalog.Snapshot, detail archives.Detail, visit func(volumebackup.Entry)) error {
	if err := s.CheckContainer(); err != nil {
		return err
	}
	return x.catalog.WithScratch(ctx, "files", s.ImageID, func(scratch string) error {
		files, err := x.docker.ContainerExport(ctx, scratch)
		if err != nil {
			return fmt.Errorf("export the root filesystem of snapshot %s: %w", s.Title(), err)
		}
		defer files.Close()
		if err := eachEntry(files, detail, visit); err != nil {
			return fmt.Errorf("read the root filesystem of snapshot %s: %w", s.Title(), err)
		}
		return nil
	})
}

// kinds are those of the entries that a tar can have.
var kinds = map[byte]string{
	tar.TypeDir: "d", tar.TypeReg: "f", tar.TypeSymlink: "l", tar.TypeFifo: "p", tar.TypeBlock: "b", tar.TypeChar: "c", tar.TypeLink: "h",
}

func eachEntry(in io.Reader, detail archives.Detail, visit func(volumebackup.Entry)) error {
	return changes.EachOfTar(in, func(name string, h *tar.Header, content io.Reader) error {
		kind, known := kinds[h.Typeflag]
		if !known {
			return nil
		}
		e := volumebackup.Entry{
			Path: protocol.Path(name), Kind: kind, Mode: uint32(h.Mode), UID: uint32(h.Uid), GID: uint32(h.Gid),
			Modified: h.ModTime.UTC(), Target: protocol.Path(h.Linkname), Xattrs: xattrNames(h),
		}
		switch kind {
		case "h":
			e.Target = protocol.Path(changes.RelativeOfTar(h.Linkname))
		case "f":
			e.Size = h.Size
			if detail == archives.Summed {
				sum := sha256.New()
				if _, err := io.Copy(sum, content); err != nil {
					return err
				}
				e.SHA256 = hex.EncodeToString(sum.Sum(nil))
			}
		}
		visit(e)
		return nil
	})
}

func xattrNames(h *tar.Header) (names []string) {
	for key := range h.PAXRecords {
		if name, isXattr := strings.CutPrefix(key, "SCHILY.xattr."); isXattr {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
