package protocol

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
)

// OpFreeze freezes or thaws the processes of a container.
const OpFreeze Op = "freeze"

// FreezeRequest asks for the processes of a container to be frozen, or thawed.
type FreezeRequest struct {
	Container string `json:"container"` // its full ID
	Frozen    bool   `json:"frozen"`
}

// Op implements Arguments.
func (FreezeRequest) Op() Op { return OpFreeze }

// containerIDLength is that of a full ID, in hex digits.
const containerIDLength = 64

func (r FreezeRequest) validate() error {
	isID := len(r.Container) == containerIDLength
	for _, c := range r.Container {
		isID = isID && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f')
	}
	if !isID {
		return fmt.Errorf("%q is not the full ID of a container: %w", r.Container, errdefs.ErrInvalidArgument)
	}
	return nil
}

// Freeze freezes the processes of a container, or thaws them. Its engine learns nothing of that.
func (c *Client) Freeze(ctx context.Context, container string, frozen bool) error {
	_, err := call[None](ctx, c, FreezeRequest{Container: container, Frozen: frozen}, nil)
	return err
}
