package protocol

import (
	"context"
	"time"
)

// OpLost lists the snapshots whose images are gone.
const OpLost Op = "lost"

// LostRequest asks which snapshots of the store have lost their images, by what one image store of one engine has.
type LostRequest struct {
	Seen Seen `json:"seen"`
}

// Op implements Arguments.
func (LostRequest) Op() Op { return OpLost }

func (r LostRequest) validate() error { return checkItems(len(r.Seen.Snapshots)) }

// Lost is a snapshot whose image is gone.
type Lost struct {
	Snapshot string    `json:"snapshot"`
	Since    time.Time `json:"since"` // when the image was first missed
	// Labels are those of the image; nil: they are not known. Nobody has checked them.
	Labels map[string]string `json:"labels,omitempty"`
}

// Lost hands each snapshot whose image is gone to visit.
func (c *Client) Lost(ctx context.Context, r LostRequest, visit func(Lost)) error {
	_, err := call[None](ctx, c, r, func(e Event) {
		if e.Lost != nil {
			visit(*e.Lost)
		}
	})
	return err
}
