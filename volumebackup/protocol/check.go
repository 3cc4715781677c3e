package protocol

import "context"

// OpCheck says whether a volume could be restored.
const OpCheck Op = "check"

// CheckRequest asks whether the archive Snapshot/Archive is there and sound, as far as that shows without reading all
// of it, and whether the volume has room for it.
type CheckRequest struct {
	Snapshot string `json:"snapshot"`
	Archive  int    `json:"archive"`
	Root     string `json:"root,omitempty"`
	Mount    *Mount `json:"mount,omitempty"`  // none: the volume is yet to be made
	Beside   bool   `json:"beside,omitempty"` // and that will be on the filesystem of the store
}

// Op implements Arguments.
func (CheckRequest) Op() Op { return OpCheck }

func (CheckRequest) validate() error { return nil }

// Check says whether Restore could be done.
func (c *Client) Check(ctx context.Context, r CheckRequest) error {
	_, err := call[None](ctx, c, r, nil)
	return err
}
