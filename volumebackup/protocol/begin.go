package protocol

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// OpBegin opens a backup: it locks the store and reads the heads.
const OpBegin Op = "begin"

// BeginRequest opens a backup.
type BeginRequest struct {
	Snapshot string  `json:"snapshot"`
	Mounts   []Mount `json:"mounts"`
}

// Mount is one volume as the worker sees it.
type Mount struct {
	// Number says where the volume is mounted, /mnt/<number>, and names its archive within the snapshot.
	Number int `json:"number"`
	// Key identifies what is mounted, as labels.Mount.Key does; its stat cache is kept under it.
	Key string `json:"key"`
	// Excluded says what is not archived, and what a restore leaves alone.
	Excluded *labels.Exclusions `json:"excluded,omitempty"`
}

// Op implements Arguments.
func (BeginRequest) Op() Op { return OpBegin }

func (r BeginRequest) validate() error {
	for _, m := range r.Mounts {
		if err := m.Excluded.Check(); err != nil {
			return err
		}
	}
	return checkItems(len(r.Mounts))
}

// Begin opens a backup.
func (c *Client) Begin(ctx context.Context, r BeginRequest, emit func(Event)) error {
	_, err := call[None](ctx, c, r, emit)
	return err
}
