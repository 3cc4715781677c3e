package build

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Restored says what a restore made or, after a dry run, would make.
type Restored struct {
	ContainerID string // empty after a dry run
	Name        string
	Snapshot    catalog.Snapshot
	Started     bool
	Plan        plan.Plan // what was done, or would be
	Incomplete  bool      // something in the volumes could not be restored
	Timings     plan.Timings
}
