package protocol

import "context"

// OpDiscard drops a backup.
const OpDiscard Op = "discard"

// DiscardRequest drops the backup.
type DiscardRequest struct{}

// Op implements Arguments.
func (DiscardRequest) Op() Op { return OpDiscard }

func (DiscardRequest) validate() error { return nil }

// Discard drops the backup.
func (c *Client) Discard(ctx context.Context) error {
	_, err := call[None](ctx, c, DiscardRequest{}, nil)
	return err
}
