package runconfig

import (
	"github.com/docker/go-connections/nat"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// Start says whether a restored container is started.
type Start int

// The ways to decide whether a restored container is started.
const (
	StartAsCaptured Start = iota // if it was running when the snapshot was taken
	StartAlways
	StartNever
)

// RestoreOptions says which snapshot to restore, and what to change.
type RestoreOptions struct {
	Snapshot        string // a reference in any form that [catalog.Catalog.Resolve] takes
	Name            string // of the new container; empty: <container>-<6 hex>
	Start           Start
	Publish         nat.PortMap       // replaces the bindings of the container ports it names
	PublishAll      bool              // every port gets a free host port
	Env             []string          // KEY=value, replacing the key's value; KEY alone removes it
	Labels          map[string]string // added, or replacing
	Networks        []string          // instead of all captured networks
	Memory          *int64            // bytes; 0: no limit; nil: as captured
	NanoCPUs        *int64            // billionths of a CPU; 0: no limit; nil: as captured
	Allow           []Access          // what a foreign snapshot may ask for
	AllowHostAccess bool              // a foreign snapshot may ask for anything
	SkipMissing     bool              // leave out what this engine does not have: networks, bind sources, devices …
	DryRun          bool              // plan only
	Volumes         CopyVolumes       // empty: new
	Binds           CopyBinds         // empty: read-only
}

// StartAfterRestore tells whether the restored container is to be started.
func StartAfterRestore(s catalog.Snapshot, how Start) bool {
	switch how {
	case StartAlways:
		return true
	case StartNever:
		return false
	}
	return s.Container.State == labels.StateRunning || s.Container.State == labels.StatePaused
}
