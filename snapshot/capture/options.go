package capture

import (
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/hooks"
)

// Options says what to take a snapshot of, and how.
type Options struct {
	Container   string // name, ID or unique ID prefix
	Line        string // take a state, which has no container: the next one of this line
	Name        string // of the snapshot; may be empty
	Description string
	Tags        []string
	Meta        map[string]string
	Trigger     labels.Trigger // empty means manual
	RunID       string
	StepID      string
	Number      *int // of the snapshot within its run
	Group       string
	Restores    labels.ID     // of a safety snapshot: what is going to be restored
	Scope       *labels.Scope // of a safety snapshot
	Expires     time.Time     // zero: never
	Pinned      bool
	Reuse       bool  // replace the snapshot of that name, once the new one is whole
	NoPause     bool  // the same as PauseNone
	Pause       Pause // which containers to freeze; empty means all
	Volumes     VolumeChoice
	Binds       BindChoice
	Limits      Limits
	Exclude     Exclude
	Hooks       hooks.Options // what the user asks for; the rest is the container's labels'
	// IdempotencyKey is the caller's word for this request: of the same container it makes one snapshot, however often it
	// is made. Empty: each makes one.
	IdempotencyKey string
	Usage          *Usage       // take one only when this has reached a threshold; nil: always
	Attachments    []Attachment // files of the caller that are stored along
	As             *As          // record it as a snapshot of another container; nil: of its own
	RootChecked    bool         // the caller has looked for whiteouts
	Full           bool         // read and hash all volumes, whatever the store says of files that seem to be unchanged
	CheckFraction  *float64     // part of such files that is compared with the store, from 0 to 1; nil: as is usual
}
