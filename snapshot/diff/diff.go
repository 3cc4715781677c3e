// Package diff finds out in what two snapshots differ, or a snapshot and a container as it is now. It changes neither.
package diff

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/paths"
)

// Rootfs is what the root filesystem is called where volumes have their names.
const Rootfs = "rootfs"

// Change is what happened to one entry of a volume, or of the root filesystem.
type Change struct {
	Volume      string // its name, or [Rootfs]; of a bind mount, the directory of the host
	Destination string // where it is mounted; "/" for the root filesystem
	volumebackup.FileChange
}

// InContainer is the path of what changed, as the container sees it.
func (c Change) InContainer() string { return path.Join(c.Destination, string(c.Path)) }

// Options say what is compared.
type Options struct {
	Old string // a snapshot
	// Lost says that Old means one that has lost its image.
	Lost bool
	// New is a container as it is now, or a snapshot. Empty: the container that Old was taken of.
	New string
	// Reverse asks what has to happen to New to make Old of it.
	Reverse bool
	// Volumes are all that is compared: names, destinations, or [Rootfs]. Empty: everything.
	Volumes []string
	// Afresh has every file of a container's volumes read, also if the store knows what they hold.
	Afresh bool
	// Paths are patterns, as for paths.New, of what is compared in a container. Empty: everything.
	Paths []string
	// Strict refuses patterns that match nothing on either side.
	Strict bool
	// Without are the names of volumes that are not compared.
	Without []string
	// Left says that the container that Old was taken of is gone, or not what this is about: no root filesystem is
	// compared and, without New, the volumes are compared that are left of it.
	Left bool
}

// Differ compares snapshots.
type Differ struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
}

// New returns a differ.
func New(docker *dockerop.Engine, snapshots *catalog.Catalog, stored *archives.Archives) *Differ {
	return &Differ{docker: docker, catalog: snapshots, archives: stored}
}

// UnknownVolumeError says that neither side of a comparison has a volume.
type UnknownVolumeError struct{ Volume string }

func (e *UnknownVolumeError) Error() string {
	return fmt.Sprintf("there is no volume %s on either side", e.Volume)
}

// Unwrap gives the error its class.
func (e *UnknownVolumeError) Unwrap() error { return cerrdefs.ErrNotFound }

// UnknownPathError says that a pattern matches nothing that was compared.
type UnknownPathError struct{ Pattern string }

func (e *UnknownPathError) Error() string {
	return fmt.Sprintf("%q matches no file on either side", e.Pattern)
}

// Unwrap gives the error its class.
func (e *UnknownPathError) Unwrap() error { return cerrdefs.ErrNotFound }

// OtherStoreError says that two snapshots have their volumes in different stores.
type OtherStoreError struct{ Old, New string }

func (e *OtherStoreError) Error() string {
	return fmt.Sprintf("the volumes of the two snapshots are in different stores, %s and %s", e.Old, e.New)
}

// Diff hands to visit each change that makes New of Old: those of the root filesystem first, then those of each volume,
// sorted by path.
func (d *Differ) Diff(ctx context.Context, o Options, p plan.Progress, visit func(Change)) error {
	meant, err := paths.New(o.Paths)
	if err != nil {
		return err
	}
	unmatched := &paths.Unmatched{}
	if o.Strict {
		if unmatched, err = paths.NewUnmatched(o.Paths); err != nil {
			return err
		}
	}
	p.Status("look up", "looking up what to compare")
	before, after, err := d.sides(ctx, o)
	if err != nil {
		return err
	}
	if o.Left {
		after.root = before.root
	}
	parts, err := pair(before, after, o, p)
	if err != nil || len(parts) == 0 {
		return err
	}
	volumes, err := d.store(ctx, before, after)
	if err != nil {
		return err
	}
	w, err := volumes.OpenComparer(ctx, volumebackup.CompareOptions{
		Purpose: "compare " + before.name + " and " + after.name, Volumes: liveVolumes(parts),
		Learns: slices.ContainsFunc(parts, func(p part) bool { return p.isRoot() }),
	}, archives.Progress(p))
	if err != nil {
		return err
	}
	err = d.compare(ctx, volumes, w, parts, o.Reverse, p, func(c Change) {
		unmatched.See(c.InContainer())
		if meant.Has(c.InContainer()) {
			visit(c)
		}
	})
	if err == nil {
		err = d.lookUp(ctx, w, parts, unmatched, p)
	}
	return errors.Join(err, w.Close())
}

// lookUp looks for patterns that have matched no change among the files of the old side. It fails if one matches none.
func (d *Differ) lookUp(ctx context.Context, w archives.Comparer, parts []part, unmatched *paths.Unmatched, p plan.Progress) error {
	for _, part := range slices.Backward(parts) { // the root filesystem last: it may have to be exported
		if len(unmatched.Patterns()) == 0 {
			return nil
		}
		if part.isRoot() {
			if err := d.export(ctx, w, part.old, p); err != nil {
				return err
			}
		}
		p.Status("compare", "looking for the paths in "+part.volume)
		err := w.Diff(ctx, part.old.tree(), volumebackup.ComparedTree{}, func(c volumebackup.FileChange) {
			unmatched.See(path.Join(part.destination, string(c.Path)))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", part.volume, err)
		}
	}
	if left := unmatched.Patterns(); len(left) > 0 {
		return &UnknownPathError{Pattern: left[0]}
	}
	return nil
}

func (d *Differ) compare(
	ctx context.Context, stored archives.Service, w archives.Comparer, parts []part, reverse bool, p plan.Progress, visit func(Change),
) error {
	for _, part := range parts {
		if part.isSame() {
			continue
		}
		if part.isRoot() {
			if err := d.learn(ctx, stored, w, &part, p); err != nil {
				return err
			}
		}
		p.Status("compare", "comparing "+part.volume)
		err := w.Diff(ctx, part.old.tree(), part.now.tree(), func(c volumebackup.FileChange) {
			if reverse {
				c = inverted(c)
			}
			visit(Change{Volume: part.volume, Destination: part.destination, FileChange: c})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", part.volume, err)
		}
	}
	return nil
}

func inverted(c volumebackup.FileChange) volumebackup.FileChange {
	back := changes.Change{Type: c.Type, SizeDelta: c.SizeDelta}.Inverted()
	c.Type, c.SizeDelta = back.Type, back.SizeDelta
	return c
}

// store is the service for the store that holds the archives of both sides.
func (d *Differ) store(ctx context.Context, before, after side) (archives.Service, error) {
	old, err := d.archives.At(ctx, *before.snapshot)
	if err != nil || after.snapshot == nil || !after.snapshot.UsesStore() {
		return old, err
	}
	now, err := d.archives.At(ctx, *after.snapshot)
	if err != nil || !before.snapshot.UsesStore() {
		return now, err
	}
	if old.Store() != now.Store() {
		return nil, &OtherStoreError{Old: old.Store(), New: now.Store()}
	}
	return old, nil
}

// liveVolumes are the volumes that are looked at as they are now.
func liveVolumes(parts []part) []string {
	var all []string
	for _, p := range parts {
		for _, c := range []content{p.old, p.now} {
			if c.live != "" && !slices.Contains(all, c.live) {
				all = append(all, c.live)
			}
		}
	}
	return all
}

// isAbout tells whether a part is meant by one of the words that users say.
func (p part) isAbout(words []string) bool {
	return len(words) == 0 || slices.ContainsFunc(words, func(word string) bool {
		if p.isRoot() {
			return word == Rootfs
		}
		return strings.TrimSuffix(word, "/") == p.destination || slices.Contains(p.names, word)
	})
}
