package protocol

import "context"

// OpSecure checks, and repairs, what it takes to roll a restore back.
const OpSecure Op = "secure"

// SecureRequest asks whether a restore could be rolled back. The volume that is mounted as Mount holds what the
// archive Now says, and is going to become what the archive Next says. If the store has lost anything that it takes to
// make the volume Now again, the worker stores it anew from the volume.
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

// Op implements Arguments.
func (SecureRequest) Op() Op { return OpSecure }

func (SecureRequest) validate() error { return nil }

// SecureResult says what was read, and what was stored anew.
type SecureResult struct {
	Checked  int64 `json:"checked"`            // bytes
	Repaired int64 `json:"repaired,omitempty"` // pieces; a warning says where they were
}

// Secure makes sure that a restore can be rolled back.
func (c *Client) Secure(ctx context.Context, r SecureRequest, emit func(Event)) (SecureResult, error) {
	return call[SecureResult](ctx, c, r, emit)
}
