package build

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Port is a port that a container publishes.
type Port struct {
	Container string // as in 80/tcp
	HostIP    string
	HostPort  string
}

// Restored says what a restore made or, after a dry run, would make.
type Restored struct {
	ContainerID string // empty after a dry run
	Name        string
	Snapshot    catalog.Snapshot
	Started     bool
	Plan        plan.Plan // what was done, or would be
	Ports       []Port    // of a copy: what it publishes
	Incomplete  bool      // something in the volumes could not be restored
	Timings     plan.Timings
}
