package protocol

import (
	"context"
	"time"

	"github.com/containerd/errdefs"
)

// OpRemove deletes snapshots and frees what nothing refers to.
const OpRemove Op = "remove"

// RemoveRequest deletes snapshots and frees what no other refers to. With no snapshots named it only sweeps.
type RemoveRequest struct {
	Snapshots []Claim `json:"snapshots,omitempty"`
	// Seen, if not nil, is what the engine has; the worker also deletes what has been missing there for longer than
	// Retention, which has to be set then.
	Seen      *Seen         `json:"seen,omitempty"`
	Retention time.Duration `json:"retention,omitempty"`
	// Volumes, if not nil, are all that the engine has: what the store knows of others is forgotten.
	Volumes []string `json:"volumes"`
}

// Claim names a snapshot, and says what its image tells of it. Only if the store has the same, its archives are those
// of this image.
type Claim struct {
	Snapshot      string         `json:"snapshot"`
	Container     string         `json:"container"`
	ContainerName string         `json:"container_name"`
	Roots         map[int]string `json:"roots,omitempty"` // of the archives, by number
}

// Seen is what one image store of one engine has.
type Seen struct {
	Engine     string   `json:"engine"`
	ImageStore string   `json:"image_store"`
	Snapshots  []string `json:"snapshots"`
}

// Op implements Arguments.
func (RemoveRequest) Op() Op { return OpRemove }

func (r RemoveRequest) validate() error {
	count := max(len(r.Snapshots), len(r.Volumes))
	if r.Seen != nil {
		count = max(count, len(r.Seen.Snapshots))
		if r.Retention <= 0 {
			return errdefs.ErrInvalidArgument
		}
	}
	return checkItems(count)
}

// RemoveResult says what removing freed.
type RemoveResult struct {
	Removed []string `json:"removed,omitempty"`
	// Foreign lists what was named, but is in the store as another snapshot of that ID.
	Foreign []string `json:"foreign,omitempty"`
	// Missed lists the snapshots whose images are missed for the first time.
	Missed []string `json:"missed,omitempty"`
	Freed  int64    `json:"freed"`
}

// Remove deletes snapshots and frees what no other refers to.
func (c *Client) Remove(ctx context.Context, r RemoveRequest, emit func(Event)) (RemoveResult, error) {
	return call[RemoveResult](ctx, c, r, emit)
}
