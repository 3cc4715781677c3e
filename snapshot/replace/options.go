package replace

import (
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// Options says how to restore a snapshot in place.
type Options struct {
	runconfig.RestoreOptions
	ReadOnly      []string      // volumes to restore although the container mounts them read-only
	NoSafety      bool          // take no snapshot first: a failure cannot put volumes back
	StopOthers    bool          // stop other containers that hold the volumes, and start them again
	StopTimeout   *int          // seconds; nil: the container's own
	Wait          bool          // for health, also without a healthcheck for Settle
	Settle        time.Duration // how long a container without healthcheck must run
	HealthTimeout time.Duration // how long it may take to become healthy; 0: as long as its healthcheck needs
}

// The defaults of waiting.
const (
	DefaultSettle        = 2 * time.Second
	DefaultHealthTimeout = 2 * time.Minute // at least, unless another one is asked for
)

// Result says what a restore in place did, or with DryRun would do.
type Result struct {
	build.Restored
	Old     string                   // name of the container that is replaced; empty: it is gone
	Stops   bool                     // it runs, so it is stopped
	Others  []string                 // names of the containers that are stopped meanwhile
	Saves   bool                     // a snapshot is taken first
	Safety  *catalog.Snapshot        // that snapshot; nil: none was taken
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
