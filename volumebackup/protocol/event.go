package protocol

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// Type names what an event carries.
type Type string

// The types of event.
const (
	TypeHello    Type = "hello"
	TypeProgress Type = "progress"
	TypeWarning  Type = "warning"
	TypeEntries  Type = "entries"
	TypeResult   Type = "result"
	TypeError    Type = "error"
)

// Event is what the worker says. The field named like Type is set.
type Event struct {
	Type     Type      `json:"type"`
	Hello    *Hello    `json:"hello,omitempty"`
	Progress *Progress `json:"progress,omitempty"`
	Warning  *Warning  `json:"warning,omitempty"`
	Entries  []Entry   `json:"entries,omitempty"`
	Result   *Result   `json:"result,omitempty"`
	Error    *Error    `json:"error,omitempty"`
}

// Hello is the worker's first word.
type Hello struct {
	Protocol int `json:"protocol"`
}

// Progress tells how far the present request is.
type Progress struct {
	Phase string `json:"phase"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
	Total int64  `json:"total,omitempty"` // bytes in all; zero while unknown
}

// Warning tells of something that was left out or could not be kept exactly.
type Warning struct {
	Mount   int    `json:"mount"`
	Path    Path   `json:"path"`
	Message string `json:"message"`
	Volume  string `json:"-"` // its name, which the client's side knows
}

// Result answers a request. The field named like its Op is set, if it has any.
type Result struct {
	Pass    *PassResult    `json:"pass,omitempty"`
	Publish *PublishResult `json:"publish,omitempty"`
	Secure  *SecureResult  `json:"secure,omitempty"`
	Restore *RestoreResult `json:"restore,omitempty"`
	Verify  *VerifyResult  `json:"verify,omitempty"`
	Remove  *RemoveResult  `json:"remove,omitempty"`
	List    *ListResult    `json:"list,omitempty"`
	Usage   *UsageResult   `json:"usage,omitempty"`
}

// PassResult says what a pass found, one item per mount.
type PassResult struct {
	Mounts []PassMount `json:"mounts"`
	// Archives is what Publish would store now. Their roots go into the image's
	// labels, and the image is committed before anything is published.
	Archives []Archive `json:"archives,omitempty"`
}

// PassMount says what a pass found in one volume.
type PassMount struct {
	Number  int   `json:"number"`
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`      // sizes of all files
	Read    int64 `json:"bytes_read"` // of which this pass read
}

// PublishResult describes the archives of the new snapshot.
type PublishResult struct {
	Archives []Archive `json:"archives"`
	// LookDue says that nobody has told the store for a day, with a removal, which images there are.
	LookDue bool `json:"look_due,omitempty"`
}

// Archive describes one archive.
type Archive struct {
	Number  int    `json:"number"`
	Volume  string `json:"volume"`
	Root    string `json:"root"` // Merkle root over the entries, in hex
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Stored  int64  `json:"stored"` // what the store grew by
	// A pass says whether the volume has entries that only a worker with more rights can make again.
	Devices bool `json:"devices,omitempty"` // device nodes
	Trusted bool `json:"trusted,omitempty"` // trusted.* xattrs, and most of security.*
	// Skipped is how many entries could not be captured exactly; a warning told of each of the first ones.
	Skipped int64 `json:"skipped,omitempty"`
}

// Change is what a restore does to one entry.
type Change string

// The changes.
const (
	Created Change = "create"
	Changed Change = "change"
	Deleted Change = "delete"
)

// MaxChanges is how many changes a restore lists by name.
const MaxChanges = 1000

// RestoreResult says what a restore did, or would do.
type RestoreResult struct {
	Created Totals `json:"created"`
	Changed Totals `json:"changed"`
	Deleted Totals `json:"deleted"`
	// Changes lists the first MaxChanges of them.
	Changes []EntryChange `json:"changes,omitempty"`
	Entries int64         `json:"entries"`
	Bytes   int64         `json:"bytes"`
	// Skipped is how many attributes or entries the kernel did not allow here.
	Skipped int64 `json:"skipped,omitempty"`
}

// Totals counts entries and the bytes that are written or, for deletions, freed.
type Totals struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
}

// EntryChange is one change.
type EntryChange struct {
	Change Change `json:"change"`
	Path   Path   `json:"path"`
	Bytes  int64  `json:"bytes"`
}

// SecureResult says what was read, and what was stored anew.
type SecureResult struct {
	Checked  int64 `json:"checked"`            // bytes
	Repaired int64 `json:"repaired,omitempty"` // pieces; a warning says where they were
}

// VerifyResult lists the damage that was found.
type VerifyResult struct {
	Snapshots int      `json:"snapshots"`
	Bytes     int64    `json:"bytes"`
	Damages   []Damage `json:"damages,omitempty"`
	// More counts the damages beyond those listed.
	More int64 `json:"more,omitempty"`
}

// Damage is one place in the store that is not what it should be.
type Damage struct {
	Snapshot string `json:"snapshot"`
	Archive  int    `json:"archive"`
	Path     Path   `json:"path"`
	Pack     string `json:"pack,omitempty"`
	Offset   int64  `json:"offset"`
	Message  string `json:"message"`
}

// RemoveResult says what removing freed.
type RemoveResult struct {
	Removed []string `json:"removed,omitempty"`
	// Foreign lists what was named, but is in the store as another snapshot of that ID.
	Foreign []string `json:"foreign,omitempty"`
	Freed   int64    `json:"freed"`
}

// ListResult says what was listed.
type ListResult struct {
	Root    string `json:"root"`
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
}

// Entry is one entry of an archive, for people.
type Entry struct {
	Path     Path      `json:"path"`
	Kind     string    `json:"kind"` // d f l p s b c, and h for a further name of a file
	Mode     uint32    `json:"mode"`
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Target   Path      `json:"target,omitempty"`
	Xattrs   []string  `json:"xattrs,omitempty"`
}

// UsageResult tells what the store holds.
type UsageResult struct {
	Total     int64           `json:"total"`
	Snapshots []SnapshotUsage `json:"snapshots,omitempty"`
}

// SnapshotUsage tells what one snapshot holds in the store.
type SnapshotUsage struct {
	Snapshot string `json:"snapshot"`
	Own      int64  `json:"own"`    // freed if it alone were removed
	Shared   int64  `json:"shared"` // held by others, too
}

// Path is a name inside a volume: any bytes. In JSON it is a string if it is
// UTF-8 and does not begin with a quote, else a Go-quoted string.
type Path string

// MarshalText implements encoding.TextMarshaler.
func (p Path) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(p)) && (p == "" || p[0] != '"') {
		return []byte(p), nil
	}
	return []byte(strconv.Quote(string(p))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Path) UnmarshalText(text []byte) error {
	if len(text) == 0 || text[0] != '"' {
		*p = Path(text)
		return nil
	}
	s, err := strconv.Unquote(string(text))
	if err != nil {
		return fmt.Errorf("decode path %s: %w", text, err)
	}
	*p = Path(s)
	return nil
}

// decodeEvent reads one line of the worker.
func decodeEvent(line []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, fmt.Errorf("decode worker's message: %w", err)
	}
	complete := map[Type]bool{
		TypeHello: e.Hello != nil, TypeProgress: e.Progress != nil, TypeWarning: e.Warning != nil,
		TypeEntries: len(e.Entries) > 0, TypeResult: e.Result != nil, TypeError: e.Error != nil,
	}
	if !complete[e.Type] {
		return Event{}, fmt.Errorf("worker's message of type %q has no content", e.Type)
	}
	return e, nil
}
