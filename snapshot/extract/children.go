package extract

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// Child is an entry of a directory.
type Child struct {
	Name        string
	IsDirectory bool
}

// maxChildren is how many entries of a directory are listed.
const maxChildren = 1000

// Children lists what is in a directory that a source names, with what leads to mounts. It follows no symlinks into volumes.
func (x *Extractor) Children(ctx context.Context, source Source) ([]Child, error) {
	if err := source.Snapshot.CheckContainer(); err != nil {
		return nil, err
	}
	source = source.withDestination()
	at, _, err := source.start()
	if err != nil {
		return nil, err
	}
	at = at.inner(source.Snapshot.Mounts)
	place := at.place(at.rest...)
	var all []Child
	for _, m := range mountsBelow(source.Snapshot, place) {
		rest := strings.TrimPrefix(m.Destination, strings.TrimSuffix(place, "/")+"/")
		first, _, _ := strings.Cut(rest, "/")
		all = append(all, Child{Name: first, IsDirectory: true})
	}
	if at.mount != nil && at.mount.Archive == nil {
		return nil, &NotHeldError{Snapshot: source.Snapshot.ID, Name: source.Snapshot.Name, Destination: at.mount.Destination, Reason: at.mount.Skipped}
	}
	if at.mount == nil {
		below, err := x.rootChildren(ctx, source.Snapshot, place)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	} else {
		directory := path.Join(at.dir, path.Join(at.rest...))
		err = x.archives.Entries(ctx, source.Snapshot, *at.mount, archives.Listed, func(e volumebackup.Entry) {
			if p := string(e.Path); p != "" && parent(p) == directory && len(all) < maxChildren {
				all = append(all, Child{Name: path.Base(p), IsDirectory: e.Kind == "d"})
			}
		})
	}
	slices.SortStableFunc(all, func(a, b Child) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b Child) bool { return a.Name == b.Name }), err
}

// listFor is how long the engine may send what is below a directory.
const listFor = 2 * time.Second

// rootChildren lists what is in a directory of the root filesystem. The engine sends it together with all that is below it:
// somebody waits for this at a keyboard, so what does not come in time is not listed.
func (x *Extractor) rootChildren(ctx context.Context, s catalog.Snapshot, place string) (all []Child, err error) {
	err = x.catalog.WithScratch(ctx, "cp", s.ImageID, func(scratch string) error {
		short, cancel := context.WithTimeout(ctx, listFor)
		defer cancel()
		files, _, err := x.docker.CopyFromContainer(short, scratch, place+ending(place, true, true))
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		if err == nil {
			defer files.Close()
			all, err = childrenIn(files)
		}
		if err != nil && short.Err() == nil {
			return fmt.Errorf("list %s of snapshot %s: %w", place, s.Title(), err)
		}
		return ctx.Err()
	})
	return all, err
}

// childrenIn are the entries at the top of a tar of what is in a directory. With an error it returns those before that.
func childrenIn(files io.Reader) (all []Child, err error) {
	for r := tar.NewReader(files); len(all) < maxChildren; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return all, err
		}
		name, _, isBelow := strings.Cut(changes.RelativeOfTar(h.Name), "/")
		if name != "" && (len(all) == 0 || all[len(all)-1].Name != name) {
			all = append(all, Child{Name: name, IsDirectory: isBelow || h.Typeflag == tar.TypeDir})
		}
	}
	return all, nil
}
