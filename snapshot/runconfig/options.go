package runconfig

import (
	"time"

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
	Lost            bool   // Snapshot means one that has lost its image
	Name            string // of the new container; empty: <container>-<6 hex>
	Start           Start
	Publish         nat.PortMap       // replaces the bindings of the container ports it names
	FreePorts       bool              // the engine chooses every host port
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
	CopyLabels      CopyLabels        // empty: harmless
	Attachments     string            // directory of the client that the attachments are written to; empty: nowhere
	Waiting
}

// Waiting says whether a restore waits until the container is up, and for how long.
type Waiting struct {
	Wait          bool          // for health, also without a healthcheck for Settle
	Settle        time.Duration // how long a container without healthcheck must run
	HealthTimeout time.Duration // how long it may take to become healthy; 0: as long as its healthcheck needs
}

// The defaults of waiting.
const (
	DefaultSettle        = 2 * time.Second
	DefaultHealthTimeout = 2 * time.Minute // at least, unless another one is asked for
)

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
