//go:build linux

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/errdefs"
)

// recordFile is the name of a snapshot's record, beside its manifests.
const recordFile = "record"

// MaxRecord is how many bytes of a record are read, and the most that one may have.
const MaxRecord = 8 << 20

// Record sets what the labels of the snapshot's image say, before it is published. An empty record is not kept.
func (d *Draft) Record(labels map[string]string) { d.record = labels }

// writeRecord puts the record beside the manifests.
func (d *Draft) writeRecord() error {
	if len(d.record) == 0 {
		return nil
	}
	content, err := encodeRecord(d.record)
	if err != nil {
		return err
	}
	f, err := d.store.disk.create(filepath.Join(d.dir, recordFile))
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// ReplaceRecord changes the record of a snapshot that is in the store: its image has other labels now. It is a conflict
// if what the store has is not what the claim is about, and not-found if it has nothing.
func (s *Store) ReplaceRecord(ctx context.Context, c Claim, labels map[string]string) error {
	if err := CheckID(c.Snapshot); err != nil {
		return err
	}
	content, err := encodeRecord(labels)
	if err != nil {
		return err
	}
	unlock, err := s.Share(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !s.isSnapshot(c.Snapshot) {
		return fmt.Errorf("snapshot %s is not in the store: %w", c.Snapshot, errdefs.ErrNotFound)
	}
	its, err := s.holds(c)
	if err != nil {
		return err
	}
	if !its {
		return fmt.Errorf("what the store has of %s is of another snapshot: %w", c.Snapshot, errdefs.ErrConflict)
	}
	if err := s.disk.replace(s.path("snapshots", c.Snapshot, recordFile), s.temporary(recordFile), content); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// isSnapshot tells whether the store has a snapshot, and not only packs of one that others need.
func (s *Store) isSnapshot(id string) bool {
	manifests, err := filepath.Glob(s.path("snapshots", id, "*.man"))
	return err == nil && len(manifests) > 0 || s.hasAttachments(id)
}

// readRecord reads what the labels of a snapshot's image said; nil: that is not known, or damaged.
func (s *Store) readRecord(id string) (map[string]string, error) {
	content, err := readNote(s.path("snapshots", id, recordFile), MaxRecord+1)
	if err != nil {
		return nil, fmt.Errorf("read record of %s: %w", id, err)
	}
	return decodeRecord(content), nil
}

// VerifyRecord compares the SHA-256 of a record with an expected one. It passes over a snapshot that is not in the store.
func (s *Store) VerifyRecord(id, sum string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	if !s.isSnapshot(id) {
		return nil
	}
	content, err := readNote(s.path("snapshots", id, recordFile), MaxRecord+1)
	if err != nil {
		return fmt.Errorf("read record of %s: %w", id, err)
	}
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
		return &DamagedError{Pack: filepath.Join("snapshots", id, recordFile), Offset: -1, Reason: "it does not say what the labels of the image say"}
	}
	return nil
}

func encodeRecord(labels map[string]string) ([]byte, error) {
	content, err := json.Marshal(labels)
	if err != nil {
		return nil, fmt.Errorf("write record: %w", err)
	}
	if len(content) > MaxRecord {
		return nil, fmt.Errorf("write record: it has %d bytes, more than %d: %w", len(content), MaxRecord, errdefs.ErrInvalidArgument)
	}
	return content, nil
}

// decodeRecord reads a record; nil if it is damaged. Whoever uses it has to find out whether to believe it.
func decodeRecord(content []byte) map[string]string {
	var labels map[string]string
	if len(content) > MaxRecord || json.Unmarshal(content, &labels) != nil {
		return nil
	}
	return labels
}

// snapshotDirs lists the directories of snapshots, also of those of which only packs are left.
func (s *Store) snapshotDirs() ([]string, error) {
	all, err := os.ReadDir(s.path("snapshots"))
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var ids []string
	for _, dir := range all {
		if dir.IsDir() && CheckID(dir.Name()) == nil {
			ids = append(ids, dir.Name())
		}
	}
	return ids, nil
}
