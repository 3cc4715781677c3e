package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// OpVerify checks every stored byte.
const OpVerify Op = "verify"

// VerifyRequest checks snapshots; none means all that the store holds.
type VerifyRequest struct {
	Snapshots []VerifySnapshot `json:"snapshots,omitempty"`
	// Quick looks whether everything is there and has its size, and reads no content of files.
	Quick bool `json:"quick,omitempty"`
}

// VerifySnapshot names a snapshot and what its labels say of its archives.
type VerifySnapshot struct {
	Snapshot string `json:"snapshot"`
	// Roots holds the expected root of each archive, by its number.
	Roots map[int]string `json:"roots,omitempty"`
	// Attachments holds what each attachment should be, by its name.
	Attachments map[string]Attached `json:"attachments,omitempty"`
	// Record is what [RecordSum] makes of its labels. Empty: its record is not checked.
	Record string `json:"record,omitempty"`
}

// RecordSum is the SHA-256 of the record of a snapshot with these labels.
func RecordSum(labels map[string]string) string {
	content, err := json.Marshal(labels)
	if err != nil {
		return "" // no map of strings fails
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Op implements Arguments.
func (VerifyRequest) Op() Op { return OpVerify }

func (r VerifyRequest) validate() error { return checkItems(len(r.Snapshots)) }

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
	Missing  bool   `json:"missing,omitempty"` // the whole archive, or attachment, is not there
	// Attachment is the name of the attachment that is damaged, if it is one.
	Attachment string `json:"attachment,omitempty"`
	// Record is set if the record of the snapshot is damaged.
	Record bool `json:"record,omitempty"`
}

// Verify checks every byte of the snapshots.
func (c *Client) Verify(ctx context.Context, r VerifyRequest, emit func(Event)) (VerifyResult, error) {
	return call[VerifyResult](ctx, c, r, emit)
}
