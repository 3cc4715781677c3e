package commands

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
)

// dfResult is what df prints.
type dfResult struct {
	occupied
	By        string          `json:"by"`
	Groups    []groupUsage    `json:"groups"`    // with --by
	Snapshots []snapshotUsage `json:"snapshots"` // with --verbose
	Stores    []storeUsage    `json:"stores"`
	Limits    []limitUsage    `json:"limits"`

	PrunableCount int      `json:"prunable_count"`
	PrunableSize  byteSize `json:"prunable_size"`
	RemovedCount  int      `json:"removed_count"` // images of removed snapshots
	RemovedSize   byteSize `json:"removed_size"`
}

// occupied is what some snapshots occupy.
type occupied struct {
	SnapshotCount  int      `json:"snapshot_count"`
	ArchivedCount  int      `json:"archived_count"`
	VolumeSize     byteSize `json:"volume_size"` // of what was in the volumes
	ImagesUnique   byteSize `json:"images_unique"`
	ImagesShared   byteSize `json:"images_shared"`
	ArchivesUnique byteSize `json:"archives_unique"`
	ArchivesShared byteSize `json:"archives_shared"`
}

// groupUsage is what snapshots with something in common occupy.
type groupUsage struct {
	Group string `json:"group"`
	occupied
}

// snapshotUsage is what one snapshot occupies.
type snapshotUsage struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Container string `json:"container"`
	occupied
}

// storeUsage is what a store takes on disk.
type storeUsage struct {
	Store string   `json:"store"`
	Size  byteSize `json:"size"`
	Holes byteSize `json:"holes"`
}

// limitUsage is how much of a limit is used.
type limitUsage struct {
	Limit     string `json:"limit"`
	Container string `json:"container"` // or the line of states, if the limit is one for each
	Used      int64  `json:"used"`      // snapshots, bytes or, of retention-days, seconds
	Most      int64  `json:"most"`
}

func newOccupied(o space.Occupied) occupied {
	return occupied{
		SnapshotCount: o.Snapshots, ArchivedCount: o.Archived, VolumeSize: byteSize(o.Logical),
		ImagesUnique: byteSize(o.Images.Unique), ImagesShared: byteSize(o.Images.Shared),
		ArchivesUnique: byteSize(o.Archives.Unique), ArchivesShared: byteSize(o.Archives.Shared),
	}
}

// result is what was asked for, for programs.
func (o dfOptions) result(found removal.Outlook) dfResult {
	r := dfResult{
		occupied: newOccupied(found.All), By: string(o.engine.By), PrunableCount: found.Prunable, PrunableSize: byteSize(found.Frees),
		RemovedCount: found.Removed, RemovedSize: byteSize(found.RemovedBytes),
		Groups: []groupUsage{}, Snapshots: []snapshotUsage{}, Stores: []storeUsage{},
		Limits: convert(found.Uses, func(u retention.Use) limitUsage { return limitUsage{u.Limit, u.Line, u.Used, u.Most} }),
	}
	if o.engine.By != "" {
		r.Groups = convert(found.Groups, func(g space.Occupied) groupUsage { return groupUsage{g.Group, newOccupied(g)} })
	}
	if o.verbose {
		for i, s := range found.Snapshots {
			r.Snapshots = append(r.Snapshots, snapshotUsage{string(s.ID), s.Name, s.Container.Name, newOccupied(found.Each[i])})
		}
	}
	for _, store := range found.Stores {
		r.Stores = append(r.Stores, storeUsage{store.Store, byteSize(store.Total), byteSize(store.Holes)})
	}
	return r
}
