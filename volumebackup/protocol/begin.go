package protocol

import (
	"context"
	"fmt"
	"math"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// OpBegin opens a backup: it locks the store and reads the heads.
const OpBegin Op = "begin"

// BeginRequest opens a backup.
type BeginRequest struct {
	Snapshot string  `json:"snapshot"`
	Mounts   []Mount `json:"mounts"`
	Doubt    Doubt   `json:"doubt,omitzero"`
}

// Doubt says how far a backup believes what the store says of files that seem to be unchanged.
type Doubt struct {
	// Full has everything read and hashed, and what is in the store already read there.
	Full bool `json:"full,omitempty"`
	// Fraction is the part of what would be skipped that is read and compared, from 0 to 1.
	Fraction float64 `json:"fraction,omitempty"`
	// Every makes that due in the n-th backup of a volume since the last one that compared. 0: now, and nobody counts.
	Every int `json:"every,omitempty"`
}

func (d Doubt) validate() error {
	if math.IsNaN(d.Fraction) || d.Fraction < 0 || d.Fraction > 1 || d.Every < 0 {
		return fmt.Errorf("fraction %v of every backup %d: %w", d.Fraction, d.Every, errdefs.ErrInvalidArgument)
	}
	return nil
}

// Mount is one volume as the worker sees it.
type Mount struct {
	// Number says where the volume is mounted, /mnt/<number>, and names its archive within the snapshot.
	Number int `json:"number"`
	// Key identifies what is mounted, as labels.Mount.Key does; its stat cache is kept under it.
	Key string `json:"key"`
	// Excluded says what is not archived, and what a restore leaves alone.
	Excluded *labels.Exclusions `json:"excluded,omitempty"`
	// Limits are how much a capture takes of it.
	Limits Limits `json:"limits,omitzero"`
}

// Op implements Arguments.
func (BeginRequest) Op() Op { return OpBegin }

func (r BeginRequest) validate() error {
	for _, m := range r.Mounts {
		if err := m.Excluded.Check(); err != nil {
			return err
		}
		if err := m.Limits.validate(); err != nil {
			return err
		}
	}
	if err := r.Doubt.validate(); err != nil {
		return err
	}
	return checkItems(len(r.Mounts))
}

// Begin opens a backup.
func (c *Client) Begin(ctx context.Context, r BeginRequest, emit func(Event)) error {
	_, err := call[None](ctx, c, r, emit)
	return err
}
