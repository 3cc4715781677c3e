package protocol

import "context"

// OpRecord replaces the record of a snapshot.
const OpRecord Op = "record"

// RecordRequest tells the store what the labels of a snapshot's image say by now. The claim shows that the archives are
// those of this image.
type RecordRequest struct {
	Claim  Claim             `json:"claim"`
	Labels map[string]string `json:"labels"`
}

// Op implements Arguments.
func (RecordRequest) Op() Op { return OpRecord }

func (r RecordRequest) validate() error { return checkItems(len(r.Labels)) }

// Record replaces the record of a snapshot. The error is of the class Conflict if what the store has is of another
// snapshot, and NotFound if it has nothing.
func (c *Client) Record(ctx context.Context, r RecordRequest, emit func(Event)) error {
	_, err := call[None](ctx, c, r, emit)
	return err
}
