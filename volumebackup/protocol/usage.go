package protocol

import "context"

// OpUsage tells what each snapshot holds in the store.
const OpUsage Op = "usage"

// UsageRequest asks what each snapshot holds in the store.
type UsageRequest struct{}

// Op implements Arguments.
func (UsageRequest) Op() Op { return OpUsage }

func (UsageRequest) validate() error { return nil }

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

// Usage tells what each snapshot holds in the store.
func (c *Client) Usage(ctx context.Context) (UsageResult, error) {
	return call[UsageResult](ctx, c, UsageRequest{}, nil)
}
