package protocol

import "context"

// OpForget drops the stat caches of volumes that are gone.
const OpForget Op = "forget"

// ForgetRequest drops the stat caches of volumes that no longer exist.
type ForgetRequest struct {
	Volumes []string `json:"volumes"`
}

// Op implements Arguments.
func (ForgetRequest) Op() Op { return OpForget }

func (r ForgetRequest) validate() error { return checkItems(len(r.Volumes)) }

// Forget drops the stat caches of volumes that no longer exist.
func (c *Client) Forget(ctx context.Context, volumes []string) error {
	_, err := call[None](ctx, c, ForgetRequest{Volumes: volumes}, nil)
	return err
}
