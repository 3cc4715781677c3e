package snapshot

import (
	"time"

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
