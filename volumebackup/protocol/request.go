package protocol

import (
	"fmt"

	"github.com/containerd/errdefs"
)

// Version is the version of the conversation; both ends must speak the same.
const Version = 1

const (
	// MaxLine is the longest line either side accepts, in bytes.
	MaxLine = 16 << 20

	// MaxItems bounds every list inside a request.
	MaxItems = 100_000
)

// Op names what a request asks for.
type Op string

// The operations.
const (
	OpBegin   Op = "begin"   // open a backup: lock the store, read the heads
	OpPass    Op = "pass"    // read what changed since the head or the pass before
	OpPublish Op = "publish" // make the backup durable and visible
	OpDiscard Op = "discard" // drop the backup
	OpCheck   Op = "check"   // can a volume be made what it was?
	OpSecure  Op = "secure"  // check, and repair, what it takes to undo a restore
	OpRestore Op = "restore" // make one volume what it was, or say what that would take
	OpVerify  Op = "verify"  // check every stored byte
	OpRemove  Op = "remove"  // delete snapshots, free what nothing refers to
	OpList    Op = "list"    // the entries of one archive
	OpUsage   Op = "usage"   // bytes that each snapshot holds
	OpForget  Op = "forget"  // drop the stat caches of volumes that are gone
	OpJournal Op = "journal" // record the journal of an operation, or look for it
)

// Request asks for one thing. The field named like Op holds its arguments.
type Request struct {
	Op Op `json:"op"`
	// LockTimeoutMillis is how long to wait for others who use the store: for a
	// removal while something is captured or restored, and the other way round.
	LockTimeoutMillis int64 `json:"lock_timeout_ms"`

	Begin   *BeginRequest   `json:"begin,omitempty"`
	Pass    *PassRequest    `json:"pass,omitempty"`
	Publish *PublishRequest `json:"publish,omitempty"`
	Check   *CheckRequest   `json:"check,omitempty"`
	Secure  *SecureRequest  `json:"secure,omitempty"`
	Restore *RestoreRequest `json:"restore,omitempty"`
	Verify  *VerifyRequest  `json:"verify,omitempty"`
	Remove  *RemoveRequest  `json:"remove,omitempty"`
	List    *ListRequest    `json:"list,omitempty"`
	Forget  *ForgetRequest  `json:"forget,omitempty"`
	Journal *JournalRequest `json:"journal,omitempty"`
}

// Mount is one volume as the worker sees it.
type Mount struct {
	// Number is where the volume is mounted, /mnt/<number>, and the name of its
	// archive within the snapshot.
	Number int `json:"number"`
	// Volume is the engine's name of the volume; its stat cache is kept under it.
	Volume string `json:"volume"`
}

// BeginRequest opens a backup.
type BeginRequest struct {
	Snapshot string  `json:"snapshot"`
	Mounts   []Mount `json:"mounts"`
}

// Mode says who may be writing to the volumes during a pass.
type Mode string

// The modes.
const (
	// Live: the writers run. What is read is synced first, so that a later
	// write through a mapping shows in its times.
	Live Mode = "live"
	// Frozen: the writers are paused. Nothing is synced, which would lengthen the
	// pause; what is read here is read again by the next backup, whatever its times say.
	Frozen Mode = "frozen"
	// Idle: nothing that could write is running.
	Idle Mode = "idle"
)

// PassRequest reads what changed since the pass before, or since the head.
type PassRequest struct {
	Mode Mode `json:"mode"`
}

// PublishRequest makes the backup durable and visible, with where it is from.
type PublishRequest struct {
	// Engine is the engine's ID, and ImageStore which of its image stores has the
	// snapshot's image.
	Engine     string `json:"engine"`
	ImageStore string `json:"image_store"`
	// Container is the ID of the container, and ContainerName its name.
	Container     string `json:"container"`
	ContainerName string `json:"container_name"`
}

// CheckRequest asks whether the archive Snapshot/Archive is there and sound, as far
// as that shows without reading all of it, and whether the volume has room for it.
// The result is empty.
type CheckRequest struct {
	Snapshot string `json:"snapshot"`
	Archive  int    `json:"archive"`
	Root     string `json:"root,omitempty"`
	Mount    *Mount `json:"mount,omitempty"`  // none: the volume is yet to be made
	Beside   bool   `json:"beside,omitempty"` // and that will be on the filesystem of the store
}

// RestoreRequest makes the volume that is mounted as Mount what the archive
// Snapshot/Archive says.
type RestoreRequest struct {
	Snapshot string `json:"snapshot"`
	// Archive is the number of the archive within the snapshot.
	Archive int `json:"archive"`
	// Root is what the snapshot's label says of the archive; anything else in the
	// store is damage. Empty skips the comparison.
	Root  string `json:"root,omitempty"`
	Mount Mount  `json:"mount"`
	// DryRun only says what would be done.
	DryRun bool `json:"dry_run,omitempty"`
}

// SecureRequest asks whether the volume that is mounted as Mount, and holds what the archive Now says, could
// be made that again after it has become what the archive Next says. What the store has lost of it by then is
// stored anew from the volume.
type SecureRequest struct {
	Now   ArchiveRef `json:"now"`
	Next  ArchiveRef `json:"next"`
	Mount Mount      `json:"mount"`
}

// ArchiveRef names an archive. Root is what the snapshot's label says of it; empty skips the comparison.
type ArchiveRef struct {
	Snapshot string `json:"snapshot"`
	Archive  int    `json:"archive"`
	Root     string `json:"root,omitempty"`
}

// VerifyRequest checks snapshots; none means all that the store holds.
type VerifyRequest struct {
	Snapshots []VerifySnapshot `json:"snapshots,omitempty"`
}

// VerifySnapshot names a snapshot and what its labels say of its archives.
type VerifySnapshot struct {
	Snapshot string `json:"snapshot"`
	// Roots holds the expected root of each archive, by its number.
	Roots map[int]string `json:"roots,omitempty"`
}

// RemoveRequest deletes snapshots and frees what no other refers to. With no
// snapshots named it only sweeps.
type RemoveRequest struct {
	Snapshots []Claim `json:"snapshots,omitempty"`
	// Seen, if not nil, is what the engine has; what has been missing there for a
	// week is deleted as well.
	Seen *Seen `json:"seen,omitempty"`
}

// Claim names a snapshot, and says what its image tells of it: only if the store has
// the same, its archives are those of this image.
type Claim struct {
	Snapshot      string         `json:"snapshot"`
	Container     string         `json:"container"`
	ContainerName string         `json:"container_name"`
	Roots         map[int]string `json:"roots,omitempty"` // of the archives, by number
}

// Seen is what one image store of one engine has.
type Seen struct {
	Engine     string   `json:"engine"`
	ImageStore string   `json:"image_store"`
	Snapshots  []string `json:"snapshots"`
}

// ListRequest asks for the entries of one archive; they come as events.
type ListRequest struct {
	Snapshot string `json:"snapshot"`
	Archive  int    `json:"archive"`
	Root     string `json:"root,omitempty"`
}

// ForgetRequest drops the stat caches of volumes that no longer exist.
type ForgetRequest struct {
	Volumes []string `json:"volumes"`
}

// JournalAct says what to do with the record of an operation's journal.
type JournalAct string

// The acts.
const (
	RecordJournal JournalAct = "record" // make it, before anything is changed
	CheckJournal  JournalAct = "check"  // fail with NotFound if there is none, with Damaged if it is of another journal
	ForgetJournal JournalAct = "forget" // remove it, when the operation is over
)

// JournalRequest is about the journal of an operation. The result is empty.
type JournalRequest struct {
	Act    JournalAct `json:"act"`
	Worker string     `json:"worker"` // ID of the container whose label is the journal
	Text   string     `json:"text,omitempty"`
}

// Validate reports whether the arguments fit the operation.
func (r *Request) Validate() error {
	present := map[Op]bool{
		OpBegin: r.Begin != nil, OpPass: r.Pass != nil, OpPublish: r.Publish != nil, OpCheck: r.Check != nil, OpSecure: r.Secure != nil,
		OpRestore: r.Restore != nil, OpVerify: r.Verify != nil,
		OpRemove: r.Remove != nil, OpList: r.List != nil, OpForget: r.Forget != nil, OpJournal: r.Journal != nil,
	}
	switch r.Op {
	case OpDiscard, OpUsage:
	default:
		if !present[r.Op] {
			return fmt.Errorf("request %q without its arguments: %w", r.Op, errdefs.ErrInvalidArgument)
		}
	}
	for op, is := range present {
		if is && op != r.Op {
			return fmt.Errorf("request %q with arguments of %q: %w", r.Op, op, errdefs.ErrInvalidArgument)
		}
	}
	return r.validateArguments()
}

func (r *Request) validateArguments() error {
	var count int
	switch r.Op {
	case OpBegin:
		count = len(r.Begin.Mounts)
	case OpPass:
		switch r.Pass.Mode {
		case Live, Frozen, Idle:
		default:
			return fmt.Errorf("pass mode %q: %w", r.Pass.Mode, errdefs.ErrInvalidArgument)
		}
	case OpVerify:
		count = len(r.Verify.Snapshots)
	case OpRemove:
		count = len(r.Remove.Snapshots)
		if r.Remove.Seen != nil {
			count = max(count, len(r.Remove.Seen.Snapshots))
		}
	case OpForget:
		count = len(r.Forget.Volumes)
	default:
	}
	if count > MaxItems {
		return fmt.Errorf("request %q with %d items: %w", r.Op, count, errdefs.ErrInvalidArgument)
	}
	return nil
}
