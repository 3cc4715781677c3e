package enginetest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// Remove refuses a claim by another container than the one whose archives they are.
func (v *FakeVolumes) Remove(ctx context.Context, o volumebackup.RemoveOptions) (removed volumebackup.Removed, err error) {
	err = v.docker.do(ctx, "remove archives", func() error {
		if isThere := v.open() == nil; !isThere {
			return nil // its archives are gone as well
		}
		if o.Seen != nil {
			v.docker.Seen = append(v.docker.Seen, *o.Seen)
			for _, id := range v.lost(*o.Seen) {
				if _, known := v.Missed[id]; !known {
					v.Missed[id] = v.docker.Clock
					removed.Missed = append(removed.Missed, id)
				}
			}
		}
		for _, claim := range o.Claims {
			id := claim.Snapshot
			switch origin, ok := v.Origins[id]; {
			case !ok || v.Homes[id] != v.Home.Name:
			case origin.Container != claim.Container || origin.ContainerName != claim.ContainerName:
				removed.Foreign = append(removed.Foreign, id)
			default:
				delete(v.Archives, id)
				delete(v.Attached, id)
				delete(v.Origins, id)
				removed.Removed, removed.Freed = append(removed.Removed, id), v.Freed
			}
		}
		return nil
	})
	return removed, err
}

// lost returns the IDs of the snapshots in this store that have no image any more.
func (v *FakeVolumes) lost(seen volumebackup.Seen) []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(v.Origins)) {
		if o := v.Origins[id]; v.Homes[id] == v.Home.Name && o.Engine == seen.Engine && o.ImageStore == seen.ImageStore && !slices.Contains(seen.Snapshots, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Lost lists the snapshots that have no image any more.
func (v *FakeVolumes) Lost(ctx context.Context, seen volumebackup.Seen) (all []volumebackup.Lost, err error) {
	err = v.docker.do(ctx, "list lost in "+v.Home.Name, func() error {
		for _, id := range v.lost(seen) {
			if _, known := v.Missed[id]; !known {
				v.Missed[id] = v.docker.Clock
			}
			one := protocol.Lost{Snapshot: id, Since: v.Missed[id], Labels: v.Origins[id].Labels}
			all = append(all, volumebackup.Lost{Lost: one, Until: one.Since.Add(volumebackup.DefaultLostRetention)})
		}
		return nil
	})
	return all, err
}

// Record replaces the record of a snapshot.
func (v *FakeVolumes) Record(ctx context.Context, claim volumebackup.Claim, labels map[string]string) error {
	return v.docker.do(ctx, "record "+claim.Snapshot, func() error {
		if origin, ok := v.Origins[claim.Snapshot]; ok && v.Homes[claim.Snapshot] == v.Home.Name && origin.Container == claim.Container {
			origin.Labels = labels
			v.Origins[claim.Snapshot] = origin
		}
		return nil
	})
}

// Usage tells that each archive takes a byte for each letter of its content, and shares that with
// archives of the same content.
func (v *FakeVolumes) Usage(ctx context.Context) (held volumebackup.Usage, err error) {
	err = v.docker.do(ctx, "usage", func() error {
		if err := v.open(); err != nil {
			return err
		}
		sets := map[string]int{} // by content
		for _, id := range slices.Sorted(maps.Keys(v.Archives)) {
			if v.Homes[id] != v.Home.Name {
				continue
			}
			n := len(held.Snapshots)
			held.Snapshots = append(held.Snapshots, protocol.SnapshotUsage{Snapshot: id})
			for _, content := range v.Archives[id] {
				rest := -1
				if before, shared := sets[content]; shared {
					rest = before
					held.Sets[before].Bytes = 0
				}
				sets[content] = len(held.Sets)
				held.Sets = append(held.Sets, protocol.HolderSet{Rest: rest, Snapshot: n, Bytes: int64(len(content))})
			}
		}
		return nil
	})
	return held, err
}

// Entries fails if the archive does not exist. Its only file is the one that [fakeComparer.Diff] finds.
func (v *FakeVolumes) Entries(_ context.Context, o volumebackup.ListOptions, visit func(volumebackup.Entry)) error {
	err := v.locked(func() error { return v.holds(o.Snapshot, o.Archive) })
	if err == nil {
		visit(volumebackup.Entry{Path: "content", Kind: "f"})
	}
	return err
}

// Attachments writes each attachment in two pieces.
func (v *FakeVolumes) Attachments(ctx context.Context, snapshot string, names []string, each func(name string, read func(out io.Writer) error) error) error {
	for _, name := range names {
		if err := each(name, func(out io.Writer) error { return v.readAttachment(ctx, snapshot, name, out) }); err != nil {
			return err
		}
	}
	return nil
}

func (v *FakeVolumes) readAttachment(ctx context.Context, snapshot, name string, out io.Writer) error {
	var content string
	err := v.docker.do(ctx, "attachment "+name, func() error {
		if err := v.open(); err != nil {
			return err
		}
		found, ok := v.Attached[snapshot][name]
		if !ok || v.Homes[snapshot] != v.Home.Name {
			return fmt.Errorf("attachment %s of %s: %w", name, snapshot, protocol.NotFound)
		}
		content = found
		return nil
	})
	if err != nil {
		return err
	}
	for _, piece := range []string{content[:len(content)/2], content[len(content)/2:]} {
		if _, err := io.WriteString(out, piece); err != nil {
			return err
		}
	}
	return nil
}

// Verify finds the archives that are not there, and the damages that the fake was told of.
func (v *FakeVolumes) Verify(ctx context.Context, o volumebackup.VerifyOptions, _ volumebackup.Progress) (found volumebackup.Verified, err error) {
	err = v.docker.do(ctx, "verify archives", func() error {
		if err := v.open(); err != nil {
			return err
		}
		for _, asked := range o.Snapshots {
			for n := range asked.Roots {
				if v.holds(asked.Snapshot, n) != nil {
					found.Damages = append(found.Damages, volumebackup.Damage{Snapshot: asked.Snapshot, Archive: n, Message: "an archive is missing", Missing: true})
				}
			}
			if labels := v.Origins[asked.Snapshot].Labels; asked.Record != "" && labels != nil && volumebackup.RecordSum(labels) != asked.Record {
				found.Damages = append(found.Damages, volumebackup.Damage{Snapshot: asked.Snapshot, Message: "its record is wrong", Record: true})
			}
			found.Damages = append(found.Damages, v.Damages[asked.Snapshot]...)
		}
		return nil
	})
	return found, err
}

// CheckJournal compares text with the journal that the store holds for a worker.
func (v *FakeVolumes) CheckJournal(ctx context.Context, worker, text string) error {
	return v.docker.do(ctx, "check journal", func() error {
		recorded, ok := v.docker.Records[worker]
		switch {
		case !ok || v.Homes[worker] != v.Home.Name:
			return fmt.Errorf("no record of %s: %w", worker, protocol.NotFound)
		case recorded != text:
			return fmt.Errorf("the record of %s is of another: %w", worker, protocol.Damaged)
		}
		return nil
	})
}

// ForgetJournal removes the journal that the store holds for a worker.
func (v *FakeVolumes) ForgetJournal(ctx context.Context, worker string) error {
	return v.docker.do(ctx, "forget journal", func() error {
		delete(v.docker.Records, worker)
		return nil
	})
}
