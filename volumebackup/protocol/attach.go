package protocol

import (
	"context"
	"io"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// OpAttach puts an attachment into the backup.
const OpAttach Op = "attach"

// AttachRequest puts the bytes that go along into the backup, under a name.
type AttachRequest struct {
	Name string `json:"name"`
}

// Op implements Arguments.
func (AttachRequest) Op() Op { return OpAttach }

func (r AttachRequest) validate() error { return labels.CheckAttachmentName(r.Name) }

// Attached says what came in.
type Attached struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // in hex
}

// Attach puts what content gives into the backup, under a name.
func (c *Client) Attach(ctx context.Context, name string, content io.Reader, emit func(Event)) (Attached, error) {
	return callWith[Attached](ctx, c, AttachRequest{Name: name}, Streams{In: content}, emit)
}
