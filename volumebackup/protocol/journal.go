package protocol

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
)

// OpJournal records the journal of an operation, checks it or forgets it.
const OpJournal Op = "journal"

// JournalAct says what to do with the record of an operation's journal.
type JournalAct string

// The acts.
const (
	RecordJournal JournalAct = "record" // make it, before anything is changed
	CheckJournal  JournalAct = "check"  // fail with NotFound if there is none, with Damaged if it is of another journal
	ForgetJournal JournalAct = "forget" // remove it, when the operation is over
)

// JournalRequest is about the journal of an operation.
type JournalRequest struct {
	Act    JournalAct `json:"act"`
	Worker string     `json:"worker"` // ID of the container whose label is the journal
	Text   string     `json:"text,omitempty"`
}

// Op implements Arguments.
func (JournalRequest) Op() Op { return OpJournal }

func (r JournalRequest) validate() error {
	switch r.Act {
	case RecordJournal, CheckJournal, ForgetJournal:
		return nil
	default:
		return fmt.Errorf("act %.100q: %w", r.Act, errdefs.ErrInvalidArgument)
	}
}

// Journal records the journal of an operation, checks it or forgets it.
func (c *Client) Journal(ctx context.Context, r JournalRequest) error {
	_, err := call[None](ctx, c, r, nil)
	return err
}
