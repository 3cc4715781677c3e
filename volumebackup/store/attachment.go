//go:build linux

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/containerd/errdefs"
)

// attachmentsDir is where a snapshot's attachments are, beside its manifests.
const attachmentsDir = "attachments"

// Attached describes an attachment that a draft has taken.
type Attached struct {
	Bytes  int64
	SHA256 string // in hex
}

// Attach puts what content gives into the draft, under a name that it does not have yet. It is durable at once, for the
// draft may not be published before.
func (d *Draft) Attach(name string, content io.Reader) (Attached, error) {
	if err := checkAttachment(name); err != nil {
		return Attached{}, err
	}
	dir := filepath.Join(d.dir, attachmentsDir)
	if err := d.store.disk.mkdir(dir); err != nil {
		return Attached{}, fmt.Errorf("attach %s: %w", name, err)
	}
	f, err := d.store.disk.create(filepath.Join(dir, name))
	if errors.Is(err, os.ErrExist) {
		return Attached{}, fmt.Errorf("attach %s: there is one of that name: %w", name, errdefs.ErrInvalidArgument)
	}
	if err != nil {
		return Attached{}, fmt.Errorf("attach %s: %w", name, err)
	}
	hash := sha256.New()
	bytes, err := io.Copy(struct{ io.Writer }{f}, io.TeeReader(content, hash)) // not by a way around the disk's faults
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return Attached{}, fmt.Errorf("attach %s: %w", name, err)
	}
	d.attached = true
	return Attached{Bytes: bytes, SHA256: hex.EncodeToString(hash.Sum(nil))}, nil
}

// syncAttachments makes the names of attachments durable.
func (d *Draft) syncAttachments() error {
	if !d.attached {
		return nil
	}
	if err := d.store.disk.syncDir(filepath.Join(d.dir, attachmentsDir)); err != nil {
		return fmt.Errorf("publish attachments: %w", err)
	}
	return nil
}

// OpenAttachment opens an attachment of a snapshot. Nobody has checked its content.
func (s *Store) OpenAttachment(id, name string) (*os.File, error) {
	if err := errors.Join(CheckID(id), checkAttachment(name)); err != nil {
		return nil, err
	}
	f, err := openRegular(s.path("snapshots", id, attachmentsDir, name), os.O_RDONLY)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("attachment %s of snapshot %s is not in the store: %w", name, id, errdefs.ErrNotFound)
	case errors.Is(err, errNotRegular):
		return nil, &DamagedError{Pack: filepath.Join("snapshots", id, attachmentsDir, name), Offset: -1, Reason: errNotRegular.Error()}
	case err != nil:
		return nil, fmt.Errorf("open attachment %s: %w", name, err)
	}
	return f, nil
}

// VerifyAttachment compares an attachment with what it should be; quick reads nothing. It returns how many bytes it has
// found to be good. The error is a [DamagedError], or not-found, or says that it could not find out.
func (s *Store) VerifyAttachment(id, name string, want Attached, quick bool) (int64, error) {
	in, err := s.OpenAttachment(id, name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	damaged := func(reason string) error {
		return &DamagedError{Pack: filepath.Join("snapshots", id, attachmentsDir, name), Offset: -1, Reason: reason}
	}
	info, err := in.Stat()
	switch {
	case err != nil:
		return 0, damaged(err.Error())
	case info.Size() != want.Bytes:
		return 0, damaged(fmt.Sprintf("it has %d bytes instead of %d", info.Size(), want.Bytes))
	case quick:
		return 0, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return 0, damaged(err.Error())
	}
	if hex.EncodeToString(hash.Sum(nil)) != want.SHA256 {
		return 0, damaged("its SHA-256 is not what it was")
	}
	return want.Bytes, nil
}

// hasAttachments tells whether a snapshot has any.
func (s *Store) hasAttachments(id string) bool {
	_, err := os.Lstat(s.path("snapshots", id, attachmentsDir))
	return err == nil
}

// checkAttachment refuses a name that leads elsewhere.
func checkAttachment(name string) error {
	if name == "." || !filepath.IsLocal(name) || filepath.Base(name) != name {
		return fmt.Errorf("attachment name %.300q: %w", name, errdefs.ErrInvalidArgument)
	}
	return nil
}
