package protocol

import "context"

// OpUsage tells what the snapshots hold in the store.
const OpUsage Op = "usage"

// UsageRequest asks what the snapshots hold in the store.
type UsageRequest struct{}

// Op implements Arguments.
func (UsageRequest) Op() Op { return OpUsage }

func (UsageRequest) validate() error { return nil }

// UsageResult tells what the store holds.
type UsageResult struct {
	Total     int64           `json:"total"` // bytes of the whole store on disk
	Holes     int64           `json:"holes"` // bytes that its files are longer than that
	Snapshots []SnapshotUsage `json:"snapshots,omitempty"`
	Sets      []HolderSet     `json:"sets,omitempty"`
}

// SnapshotUsage tells what one snapshot holds in the store.
type SnapshotUsage struct {
	Snapshot string `json:"snapshot"`
	Own      int64  `json:"own"`    // freed if it alone were removed
	Shared   int64  `json:"shared"` // held by others, too
}

// HolderSet is a set of snapshots, and the bytes that just these hold: they are freed with the last
// of them. It consists of another set and one more snapshot.
type HolderSet struct {
	Rest     int   `json:"r"` // index of the other set, which comes before; -1: there is none
	Snapshot int   `json:"s"` // index of the snapshot
	Bytes    int64 `json:"b"`
}

// Usage tells what the snapshots hold in the store, alone and together with others.
func (c *Client) Usage(ctx context.Context) (UsageResult, error) {
	return call[UsageResult](ctx, c, UsageRequest{}, nil)
}
