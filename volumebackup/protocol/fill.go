package protocol

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
)

// OpFill makes several volumes what one archive says, and reads its content once.
const OpFill Op = "fill"

// FillRequest makes the volumes that are mounted as Mounts what the archive Snapshot/Archive says.
type FillRequest struct {
	Snapshot string `json:"snapshot"`
	// Archive is the number of the archive within the snapshot.
	Archive int `json:"archive"`
	// Root is what the snapshot's label says of the archive; anything else in the store is damage. Empty skips the
	// comparison.
	Root   string  `json:"root,omitempty"`
	Mounts []Mount `json:"mounts"`
}

// Op implements Arguments.
func (FillRequest) Op() Op { return OpFill }

func (r FillRequest) validate() error {
	if len(r.Mounts) == 0 {
		return fmt.Errorf("no volume to fill: %w", errdefs.ErrInvalidArgument)
	}
	return checkItems(len(r.Mounts))
}

// FillResult says what a restore did to each volume, in the order of the mounts.
type FillResult struct {
	Volumes []RestoreResult `json:"volumes"`
}

// Fill makes several volumes what one archive says.
func (c *Client) Fill(ctx context.Context, r FillRequest, emit func(Event)) (FillResult, error) {
	return call[FillResult](ctx, c, r, emit)
}
