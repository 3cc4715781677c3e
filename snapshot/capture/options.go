package capture

import (
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Options says what to take a snapshot of, and how.
type Options struct {
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
