package protocol

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
)

// OpPass reads what changed since the pass before, or since the head.
const OpPass Op = "pass"

// Mode says who may be writing to the volumes during a pass.
type Mode string

// The modes.
const (
	// Live: the writers run. What is read is synced first, so that a later write through a mapping shows in its
	// times.
	Live Mode = "live"
	// Frozen: the writers are paused. Nothing is synced, which would lengthen the pause; the next backup reads what
	// is read here again, whatever its times say.
	Frozen Mode = "frozen"
	// Idle: nothing that could write is running.
	Idle Mode = "idle"
)

// PassRequest reads what changed since the pass before, or since the head.
type PassRequest struct {
	Mode Mode `json:"mode"`
}

// Op implements Arguments.
func (PassRequest) Op() Op { return OpPass }

func (r PassRequest) validate() error {
	switch r.Mode {
	case Live, Frozen, Idle:
		return nil
	default:
		return fmt.Errorf("mode %.100q: %w", r.Mode, errdefs.ErrInvalidArgument)
	}
}

// PassResult says what a pass found, one item per mount.
type PassResult struct {
	Mounts []PassMount `json:"mounts"`
	// Archives is what Publish would store now. Their roots go into the image's labels, and the image is committed
	// before anything is published.
	Archives []Archive `json:"archives,omitempty"`
}

// PassMount says what a pass found in one volume.
type PassMount struct {
	Number  int   `json:"number"`
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`      // sizes of all files
	Read    int64 `json:"bytes_read"` // of which this pass read
}

// Pass reads what changed since the pass before.
func (c *Client) Pass(ctx context.Context, mode Mode, emit func(Event)) (PassResult, error) {
	return call[PassResult](ctx, c, PassRequest{Mode: mode}, emit)
}
