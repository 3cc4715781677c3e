//go:build linux

package worker

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// TestAttachmentsCrossThePipe expects the bytes back that were sent, of any length: more than a window, and none.
func TestAttachmentsCrossThePipe(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	assert.NilError(t, c.Begin(t.Context(), protocol.BeginRequest{Snapshot: "s"}, nil))
	all := map[string]string{"empty": "", "binary": "\xff\x00\n", "large": strings.Repeat("abcdefgh", protocol.Window)}
	for name, content := range all {
		attached, err := c.Attach(t.Context(), name, strings.NewReader(content), nil)
		assert.NilError(t, err)
		assert.Equal(t, attached.Bytes, int64(len(content)))
	}
	_, err := c.Publish(t.Context(), protocol.PublishRequest{Engine: "engine", ImageStore: "overlay2"}, nil)
	assert.NilError(t, err)
	for name, content := range all {
		var got bytes.Buffer
		assert.NilError(t, c.Attachment(t.Context(), protocol.AttachmentRequest{Snapshot: "s", Name: name}, &got, nil))
		assert.Assert(t, got.String() == content, name)
	}
	err = c.Attachment(t.Context(), protocol.AttachmentRequest{Snapshot: "s", Name: "none"}, &bytes.Buffer{}, nil)
	assert.Assert(t, errdefs.IsNotFound(err), "%v", err)
	assert.Assert(t, errors.Is(c.Attachment(t.Context(), protocol.AttachmentRequest{Snapshot: "other", Name: "empty"}, &bytes.Buffer{}, nil), protocol.NotFound))
}

func TestAttachingNeedsABackup(t *testing.T) {
	c := newWorld(t).connect()
	_, err := c.Attach(t.Context(), "x", strings.NewReader("y"), nil)
	assert.Assert(t, errors.Is(err, protocol.Invalid), "%v", err)
}
