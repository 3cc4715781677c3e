package protocol

import (
	"context"
	"io"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// OpAttachment reads an attachment of a snapshot.
const OpAttachment Op = "attachment"

// AttachmentRequest asks for an attachment; its bytes come along. The worker does not check them: the client knows from
// the snapshot's labels what they have to be.
type AttachmentRequest struct {
	Snapshot string `json:"snapshot"`
	Name     string `json:"name"`
}

// Op implements Arguments.
func (AttachmentRequest) Op() Op { return OpAttachment }

func (r AttachmentRequest) validate() error { return labels.CheckAttachmentName(r.Name) }

// Attachment writes an attachment to out.
func (c *Client) Attachment(ctx context.Context, r AttachmentRequest, out io.Writer, emit func(Event)) error {
	_, err := callWith[None](ctx, c, r, Streams{Out: out}, emit)
	return err
}
