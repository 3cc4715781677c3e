package snapshot

import (
	"time"

	"github.com/docker/go-connections/nat"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// CreateOptions says what to take a snapshot of, and how.
type CreateOptions struct {
	Container   string // name, ID or unique ID prefix
	Name        string // of the snapshot; may be empty
	Description string
	Tags        []string
	Meta        map[string]string
	Trigger     labels.Trigger // empty means manual
	RunID       string
	StepID      string
	Group       string
	Expires     time.Time // zero: never
	Pinned      bool
	Reuse       bool  // replace the snapshot of that name, once the new one is whole
	NoPause     bool  // the same as PauseNone
	Pause       Pause // which containers to freeze; empty means all
	Volumes     VolumeChoice
}

// Start says whether a restored container is started.
type Start int

// The ways to decide it.
const (
	StartAsCaptured Start = iota // if it was running when the snapshot was taken
	StartAlways
	StartNever
)

// RestoreOptions says which snapshot to bring back, and what to change.
type RestoreOptions struct {
	Snapshot        string // a reference in any form that [Engine.Resolve] takes
	Name            string // of the new container; empty: <container>-<6 hex>
	Start           Start
	Publish         nat.PortMap       // replaces the bindings of the container ports it names
	PublishAll      bool              // every port gets a free host port
	Env             []string          // KEY=value, replacing the key's value; KEY alone removes it
	Labels          map[string]string // added, or replacing
	Networks        []string          // instead of all captured networks
	Memory          *int64            // bytes; 0: no limit; nil: as captured
	NanoCPUs        *int64            // billionths of a CPU; 0: no limit; nil: as captured
	Allow           []Access          // what a foreign snapshot may have
	AllowHostAccess bool              // a foreign snapshot may have all that it asks for
	SkipMissing     bool              // leave out what this engine does not have: networks, bind sources, devices …
	DryRun          bool              // plan only
	Volumes         CopyVolumes       // empty: new
	Binds           CopyBinds         // empty: read-only
}

// Restored says what a restore made, or with DryRun would make.
type Restored struct {
	ContainerID string // empty after a dry run
	Name        string
	Snapshot    catalog.Snapshot
	Started     bool
	Plan        plan.Plan // what was done, or would be
	Incomplete  bool      // something of the volumes could not be brought back
	Timings     plan.Timings
}

// RemoveOptions says how to remove snapshots.
type RemoveOptions struct {
	Force bool // also pinned ones
}
