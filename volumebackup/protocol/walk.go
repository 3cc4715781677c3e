package protocol

import (
	"context"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
)

// OpWalk lists the root filesystem of a container that runs.
const OpWalk Op = "walk"

// WalkRequest asks a worker in the PID namespace of a container for what its root filesystem holds: the bytes of the answer
// are a manifest, without places of pieces. The bytes that go along are what an earlier walk has answered, or none.
type WalkRequest struct {
	Created int64 `json:"created"` // when the container was made, in seconds since 1970
}

// Op implements Arguments.
func (WalkRequest) Op() Op { return OpWalk }

func (r WalkRequest) validate() error {
	if r.Created < 0 {
		return fmt.Errorf("a container made at %d: %w", r.Created, errdefs.ErrInvalidArgument)
	}
	return nil
}

// WalkResult says how the list came about.
type WalkResult struct {
	Mounts []Path `json:"mounts,omitempty"` // where something is mounted; these places are not in the list
	Files  int64  `json:"files"`
	Read   int64  `json:"read"` // how many of the files were read
}

// Walk writes the list of the files of a root filesystem to out.
func (c *Client) Walk(ctx context.Context, r WalkRequest, known io.Reader, out io.Writer, emit func(Event)) (WalkResult, error) {
	return callWith[WalkResult](ctx, c, r, Streams{In: known, Out: out}, emit)
}
