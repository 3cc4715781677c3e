package replace

import (
	"errors"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// Options says how to restore a snapshot in place.
type Options struct {
	runconfig.RestoreOptions
	Copy        string            // promote this copy, instead of restoring a snapshot: its state takes the place of what it was made of
	ReadOnly    []string          // volumes to restore although the container mounts them read-only
	Live        bool              // with volumes alone: the container is only frozen while they are written
	Only        []string          // what goes back: volumes, by name or destination, and [Rootfs]; empty: everything
	Paths       []string          // of the volumes in Only, what goes back: patterns as for paths.New; empty: everything
	NoSafety    bool              // take no snapshot first: a failure cannot put volumes back
	StopOthers  bool              // stop other containers that hold the volumes, and start them again
	Undoes      *catalog.Snapshot // the safety snapshot that is restored to take a restore back; nil: a restore
	StopTimeout *int              // seconds; nil: the container's own
}

// Rootfs is the word for the root filesystem, and the configuration, in [Options.Only].
const Rootfs = "rootfs"

// keeps tells whether the container itself stays: only volumes go back. A snapshot that has lost its image has nothing
// else.
func (o Options) keeps() bool { return o.Lost || len(o.Only) > 0 && !slices.Contains(o.Only, Rootfs) }

// shared are the options that concern all containers of a restore in place.
type shared struct{ dryRun, noSafety, stopOthers, keeps, live bool }

// sharedBy refuses options that do not go together.
func sharedBy(all []Options) (shared, error) {
	if len(all) == 0 {
		return shared{}, errors.New("no snapshot to restore")
	}
	of := func(o Options) shared {
		return shared{dryRun: o.DryRun, noSafety: o.NoSafety, stopOthers: o.StopOthers, keeps: o.keeps(), live: o.Live}
	}
	for _, o := range all {
		if of(o) != of(all[0]) {
			return shared{}, errors.New("containers that are restored together are restored in the same way")
		}
	}
	if slices.ContainsFunc(all, func(o Options) bool { return len(o.Paths) > 0 && !o.keeps() }) {
		return shared{}, errors.New("paths can only be chosen in volumes that go back alone")
	}
	if len(all) > 1 && slices.ContainsFunc(all, func(o Options) bool { return o.Copy != "" }) {
		return shared{}, errors.New("a copy is promoted alone")
	}
	how := of(all[0])
	switch {
	case how.live && !how.keeps:
		return shared{}, errors.New("a container is only frozen if it is kept")
	case how.keeps && how.noSafety:
		return shared{}, errors.New("volumes alone go back only with a safety snapshot: without one, nothing would show that they did")
	}
	return how, nil
}

// Result says what a restore in place did, or with DryRun would do.
type Result struct {
	build.Restored
	Old     string                   // name of the container that is replaced; empty: it is gone
	Keeps   bool                     // it is not replaced: only volumes go back
	Freezes bool                     // it runs, so it is frozen meanwhile
	Stops   bool                     // it runs, so it is stopped
	Others  []string                 // names of the containers that are stopped meanwhile
	Saves   bool                     // a snapshot is taken first
	Safety  *catalog.Snapshot        // that snapshot; nil: none was taken
	Copy    string                   // name of the copy that takes the place; empty: a snapshot is restored
	Volumes []VolumeChange           // what changed in each
	Config  []runconfig.ConfigChange // what of the configuration changed
}

// VolumeChange says what happened to one volume.
type VolumeChange struct {
	Volume  string
	Made    bool   // it was gone
	Kept    string // why it is left as it is
	Created Count
	Changed Count
	Deleted Count
}

// Count is a number of entries and of bytes.
type Count struct {
	Entries int64
	Bytes   int64
}
