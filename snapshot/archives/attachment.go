package archives

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// NoAttachmentError says that a snapshot has no attachment of a name. It is an errdefs not-found
// error.
type NoAttachmentError struct {
	Snapshot   labels.ID
	Name       string // of the snapshot
	Attachment string
}

func (e *NoAttachmentError) Error() string {
	return fmt.Sprintf("snapshot %s has no attachment %q", labels.Title(e.Name, e.Snapshot), e.Attachment)
}

// Unwrap gives the error its class.
func (e *NoAttachmentError) Unwrap() error { return cerrdefs.ErrNotFound }

// ReadAttachment writes an attachment of a snapshot to out. It fails with [protocol.Damaged] if that
// was not what the snapshot's labels say; what out got is then not to be trusted.
func (a *Archives) ReadAttachment(ctx context.Context, s catalog.Snapshot, name string, out io.Writer) error {
	recorded, known := s.Attachment(name)
	if !known {
		return &NoAttachmentError{Snapshot: s.ID, Name: s.Name, Attachment: name}
	}
	return a.readAttachments(ctx, s, []labels.Attachment{recorded}, func(_ string, read func(out io.Writer) error) error { return read(out) })
}

// readAttachments calls each for every attachment, with what reads it and checks what was read.
func (a *Archives) readAttachments(ctx context.Context, s catalog.Snapshot, all []labels.Attachment, each func(name string, read func(out io.Writer) error) error) error {
	if len(all) == 0 {
		return nil
	}
	store, err := a.At(ctx, s)
	if err != nil {
		return err
	}
	recorded, names := map[string]labels.Attachment{}, make([]string, len(all))
	for i, one := range all {
		recorded[one.Name], names[i] = one, one.Name
	}
	return store.Attachments(ctx, string(s.ID), names, func(name string, read func(io.Writer) error) error {
		return each(name, func(out io.Writer) error {
			if err := readChecked(recorded[name], read, out); err != nil {
				return fmt.Errorf("read attachment %s of snapshot %s: %w", name, s.Title(), err)
			}
			return nil
		})
	})
}

// readChecked reads an attachment into out, and checks what it reads.
func readChecked(recorded labels.Attachment, read func(io.Writer) error, out io.Writer) error {
	checked := &checkedWriter{out: out, hash: sha256.New(), left: recorded.Bytes}
	if err := read(checked); err != nil {
		return err
	}
	if found := hex.EncodeToString(checked.hash.Sum(nil)); checked.left != 0 || found != recorded.SHA256 {
		return &protocol.Error{Class: protocol.Damaged, Message: "it is damaged: its SHA-256 is not the one that was recorded"}
	}
	return nil
}

// checkedWriter counts and hashes what is written, and takes no more than is expected.
type checkedWriter struct {
	out  io.Writer
	hash hash.Hash
	left int64
}

func (w *checkedWriter) Write(b []byte) (int, error) {
	if int64(len(b)) > w.left {
		return 0, &protocol.Error{Class: protocol.Damaged, Message: "it is damaged: it is longer than was recorded"}
	}
	n, err := w.out.Write(b)
	w.left -= int64(n)
	_, _ = w.hash.Write(b[:n])
	return n, err
}
