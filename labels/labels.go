// Package labels is the schema of the cua.snapshot.* image labels, which are
// the only place where a snapshot's metadata is kept. It is pure: it knows no
// Docker and no clock.
//
// [Encode] writes every label of the schema, also those that do not apply (as
// an empty value): a committed image inherits the labels of the image below it,
// and an older snapshot must not shine through. [Decode] therefore takes an
// empty value for an absent one.
//
// Labels come from images, and images come from anywhere. Decode refuses what
// it cannot trust and ignores keys that it does not know, so that later
// versions may add some.
package labels

import (
	"encoding/json"
	"time"
)

// Prefix begins every label of the schema.
const Prefix = "cua.snapshot."

// SchemaVersion is the value of [KeyVersion] that this package reads and writes.
const SchemaVersion = "1"

// The label keys of schema version 1.
const (
	KeyVersion          = Prefix + "version"          // on everything that we create on an engine
	KeyID               = Prefix + "id"               // an [ID]; what makes an image a snapshot
	KeyName             = Prefix + "name"             // tag grammar, unique per container
	KeyKind             = Prefix + "kind"             // a [Kind]
	KeyLine             = Prefix + "line"             // of a state: what it is one in a row of
	KeyDescription      = Prefix + "description"      // free text
	KeyCreated          = Prefix + "created"          // RFC 3339, nanoseconds, UTC
	KeyTags             = Prefix + "tags"             // JSON list of strings
	KeyTrigger          = Prefix + "trigger"          // a [Trigger]
	KeyRunID            = Prefix + "run-id"           // the caller's name for a run
	KeyStepID           = Prefix + "step-id"          // the caller's name for a step of it
	KeyNumber           = Prefix + "number"           // of the snapshot within its run, from 0
	KeyParent           = Prefix + "parent"           // the ID of the previous snapshot in this line
	KeyRestores         = Prefix + "restores"         // of a safety snapshot: the ID of the snapshot that was restored
	KeyScope            = Prefix + "scope"            // of a safety snapshot: JSON, a [Scope]
	KeyGroup            = Prefix + "group"            // what was taken together
	KeyContainerID      = Prefix + "container.id"     // 64 hex digits
	KeyContainerName    = Prefix + "container.name"   // without the leading slash
	KeyContainerState   = Prefix + "container.state"  // a [State]
	KeyContainerHealth  = Prefix + "container.health" // a [Health]
	KeyContainerImage   = Prefix + "container.image"  // the reference that it ran from
	KeyContainerImageID = Prefix + "container.image-id"
	KeyEngineID         = Prefix + "engine.id"
	KeyPlatform         = Prefix + "platform"        // os/arch[/variant]
	KeyConfig           = Prefix + "config"          // JSON, a [Config]
	KeyMounts           = Prefix + "mounts"          // JSON list of [Mount]
	KeyAttachments      = Prefix + "attachments"     // JSON list of [Attachment]
	KeyWhiteouts        = Prefix + "whiteouts"       // JSON list of paths that the commit took for removals
	KeySize             = Prefix + "size"            // bytes in the writable layer
	KeyExpires          = Prefix + "expires"         // RFC 3339
	KeyPinned           = Prefix + "pinned"          // "true" or empty
	KeyStore            = Prefix + "store"           // volume that holds the archives
	KeyStoreID          = Prefix + "store-id"        // on the volume itself, too: tells it from others of its name
	KeyUpdated          = Prefix + "updated"         // RFC 3339, as created: when it was annotated last
	KeyFormer           = Prefix + "former"          // JSON list of the image IDs that it had before, as far as containers may use them
	KeyIdempotencyKey   = Prefix + "idempotency-key" // the caller's word for one request to take it
	KeyUsage            = Prefix + "usage"           // how much of something was used, as a part of the whole: 0.91
	KeyUsageLow         = Prefix + "usage-low"       // the same since then, when it first was below a threshold again
	KeySeal             = Prefix + "seal"            // what [Seal] makes of all the others
	PrefixMeta          = Prefix + "meta."           // followed by the user's own key

	// PrefixPolicy begins labels that users give their own containers: how this
	// program is to treat them.
	PrefixPolicy   = Prefix + "policy."
	KeyPolicyBinds = PrefixPolicy + "binds" // [PolicyBindsKnown], or nothing
	// What of its volumes is not captured: names, or paths, or globs for names, with commas between them.
	KeyPolicyExclude = PrefixPolicy + "exclude"
	// Which of its bind mounts are captured: their destinations, with commas or newlines between them.
	KeyPolicyIncludeBind = PrefixPolicy + "include-bind"
	// When a container that is watched is captured.
	KeyPolicyInterval = PrefixPolicy + "interval" // a duration
	KeyPolicySchedule = PrefixPolicy + "schedule" // the five fields of cron
	KeyPolicyOn       = PrefixPolicy + "on"       // die, oom, unhealthy, with commas between them
	KeyPolicyMemory   = PrefixPolicy + "memory"   // a part of its memory limit, as in 85%
	// The hooks: commands that run in the container around its freeze.
	KeyPolicyPre         = PrefixPolicy + "pre"
	KeyPolicyPost        = PrefixPolicy + "post"
	KeyPolicyHookTimeout = PrefixPolicy + "hook-timeout" // a duration
	KeyPolicyOnError     = PrefixPolicy + "on-error"     // continue or fail

	// KeyRestoredFrom is not part of an image's record: it stands on containers
	// and volumes that a restore made, and holds the ID of their snapshot.
	KeyRestoredFrom = Prefix + "restored-from"
	// KeyRestoredAt stands beside it, and tells when that was: RFC 3339, nanoseconds, UTC.
	KeyRestoredAt = Prefix + "restored-at"
	// KeyCopyOf stands on a container that a restore made beside the original, and
	// holds the ID of the snapshot.
	KeyCopyOf = Prefix + "copy-of"
	// KeyUndo stands on a container that was restored in place, and holds the ID of
	// the snapshot that was taken before, with which that is taken back. It is [UndoNone] if none was.
	KeyUndo = Prefix + "undo"
	// KeyHostname stands on a container that was restored in place with a host name that the engine had made from the ID of
	// the replaced container, and holds that name: a copy of the container gets a default of its own.
	KeyHostname = Prefix + "hostname"
	// KeyOperation stands on what one restore makes, for as long as it could be
	// left behind half made: its volumes, and a container that is to be started.
	KeyOperation = Prefix + "operation"
	// KeySession is not part of a snapshot's record either: it stands on the image that
	// keeps what is known of a run.
	KeySession = Prefix + "session"
	// KeyLock stands on a volume that is a lock for a moment, and tells who holds it.
	KeyLock = Prefix + "lock"
	// KeyRemoves stands on the lock of a name, and is the ID of the snapshot that is being removed with it.
	KeyRemoves = Prefix + "removes"
	// KeyFilledBy stands on a copy that is not to be started and has anonymous
	// volumes, and names the operation that fills them. Until that has, the copy has
	// another name.
	KeyFilledBy = Prefix + "filled-by"
	// KeyDrill stands on the container and the volumes of a rehearsed restore, and names its
	// operation: nothing of it is to stay, however far it has got.
	KeyDrill = Prefix + "drill"
)

// UndoNone says that a restore in place cannot be taken back: no safety snapshot was taken.
const UndoNone = "none"

// PolicyBindsKnown says that the owner of a container knows of its bind mounts,
// and need not be told that their content is not in a snapshot.
const PolicyBindsKnown = "known"

// Trigger says why a snapshot was taken.
type Trigger string

// The triggers of schema version 1.
const (
	TriggerManual       Trigger = "manual"
	TriggerRunStart     Trigger = "run_start"
	TriggerRunEnd       Trigger = "run_end"
	TriggerBeforeAction Trigger = "before_action"
	TriggerAfterAction  Trigger = "after_action"
	TriggerInterval     Trigger = "interval"
	TriggerEvent        Trigger = "event"
	TriggerThreshold    Trigger = "threshold"
	TriggerPreRestore   Trigger = "pre_restore"
	TriggerAgent        Trigger = "agent"
)

// Triggers lists every trigger, in the order in which help texts show them.
func Triggers() []Trigger {
	return []Trigger{
		TriggerManual, TriggerRunStart, TriggerRunEnd, TriggerBeforeAction, TriggerAfterAction,
		TriggerInterval, TriggerEvent, TriggerThreshold, TriggerPreRestore, TriggerAgent,
	}
}

// State is what a container was doing when its snapshot was taken.
type State string

// The states of schema version 1.
const (
	StateRunning State = "running"
	StatePaused  State = "paused"
	StateExited  State = "exited"
	StateCreated State = "created"
)

// Health is the result of a container's healthcheck when its snapshot was taken.
type Health string

// The results of schema version 1. A container without a healthcheck has none.
const (
	HealthStarting  Health = "starting"
	HealthHealthy   Health = "healthy"
	HealthUnhealthy Health = "unhealthy"
)

// Record is everything that the labels of one snapshot say. The zero value of
// a field means that it does not apply.
type Record struct {
	ID          ID
	Kind        Kind
	Line        string // of a state, and the name of its container; empty for a container's
	Name        string
	Description string
	Created     time.Time
	Tags        []string
	Trigger     Trigger
	RunID       string
	StepID      string
	Number      *int // of the snapshot within its run, from 0; nil: it has none
	Parent      ID
	Restores    ID     // of a safety snapshot: what was restored after it was taken
	Scope       *Scope // of a safety snapshot
	Group       string
	Container   Container
	EngineID    string
	Platform    string
	Config      Config
	Mounts      []Mount
	Attachments []Attachment
	Whiteouts   []string // paths in the root filesystem that the commit took for removals: the image has neither them nor the files they hide
	Size        int64    // bytes in the writable layer
	Expires     time.Time
	Pinned      bool
	Meta        map[string]string
	Store       string    // name of the volume that holds the archives; empty: there are none
	StoreID     string    // tells that volume from others of its name; empty: it has no ID
	Updated     time.Time // zero: it was never annotated
	Former      []string  // IDs of images that the snapshot was before it was annotated
	// IdempotencyKey is the caller's word for one request: it makes one snapshot of a container, however often it is made.
	IdempotencyKey string
	Usage          *float64 // how much of something was used when it was taken: 1 is all; nil: nobody said
	UsageLow       *float64 // when that first was below a threshold again; nil: it was not
	Seal           string   // empty: made without the engine's key
}

// Title is how messages call the snapshot.
func (r Record) Title() string { return Title(r.Name, r.ID) }

// Container is the container that a snapshot was taken of. A state has only a name, which is its line.
type Container struct {
	ID      string // 64 hex digits; a state has none
	Name    string // without the leading slash
	State   State
	Health  Health // empty: it has no healthcheck
	Image   string // the reference that it ran from
	ImageID string
}

// Config is a container's whole run configuration as the engine reported it,
// ready for the engine's create call. It is kept as the engine's own bytes, so
// that what this program does not know is not lost.
type Config struct {
	Config           json.RawMessage `json:"Config"`
	HostConfig       json.RawMessage `json:"HostConfig"`
	NetworkingConfig json.RawMessage `json:"NetworkingConfig,omitempty"`
	// Peers are the names, by their IDs, of the containers whose namespaces it shares.
	Peers map[string]string `json:"Peers,omitempty"`
	// DefaultHostname is set if an engine chose the host name, from the ID of this container or of one that it replaced.
	DefaultHostname bool `json:"DefaultHostname,omitempty"`
}

// Mount is one mount of the container. It has either an archive, or a reason
// why its content is not in the snapshot.
type Mount struct {
	Type        string            `json:"type"`
	Name        string            `json:"name,omitempty"`   // of the volume
	Source      string            `json:"source,omitempty"` // of a bind mount, on the engine's host
	Subpath     string            `json:"subpath,omitempty"`
	Destination string            `json:"destination"`
	Driver      string            `json:"driver,omitempty"`
	Options     map[string]string `json:"options,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	RW          bool              `json:"rw"`
	Anonymous   bool              `json:"anonymous,omitempty"`
	Archive     *Archive          `json:"archive,omitempty"`
	Skipped     string            `json:"skipped,omitempty"`
}

// Archive describes the stored content of a volume.
type Archive struct {
	Root    string `json:"root"`              // SHA-256 Merkle root of the manifest's entries, hex
	Entries int64  `json:"entries"`           // how many
	Bytes   int64  `json:"bytes"`             // what they hold
	Stored  int64  `json:"stored"`            // what this snapshot added to the store
	Index   int    `json:"index"`             // the archive's number within the snapshot
	Devices bool   `json:"devices,omitempty"` // it holds device nodes
	Trusted bool   `json:"trusted,omitempty"` // it holds trusted.* xattrs, or others that take as much to set
	// Excluded says what of the volume is not in it; nil: nothing was excluded.
	Excluded *Exclusions `json:"excluded,omitempty"`
}
