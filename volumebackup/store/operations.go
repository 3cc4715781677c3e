//go:build linux

package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// recordAge is how long the record of an operation is kept that nobody has finished.
const recordAge = 90 * 24 * time.Hour

var validOperation = regexp.MustCompile(`^[0-9a-f]{64}$`)

// RecordOperation records, before an operation changes anything, that the worker with
// this ID has this journal. Nobody else can make such a record: its key never leaves
// the store.
func (s *Store) RecordOperation(worker, journal string, now time.Time) error {
	path, err := s.operationPath(worker)
	if err != nil {
		return err
	}
	if _, err := s.FingerprintKey(); err != nil { // it makes the key
		return err
	}
	sum, err := s.operationSum(worker, journal)
	if err != nil {
		return err
	}
	if err := s.disk.mkdir(s.path("operations")); err != nil {
		return fmt.Errorf("record operation: %w", err)
	}
	if err := s.sweepOperations(now); err != nil {
		return err
	}
	f, err := s.disk.create(path)
	if err != nil {
		return fmt.Errorf("record operation: %w", err)
	}
	_, err = f.Write(sum)
	if err := errors.Join(err, f.Sync(), f.Close(), s.disk.syncDir(s.path("operations"))); err != nil {
		return errors.Join(fmt.Errorf("record operation: %w", err), s.disk.remove(path))
	}
	return nil
}

// CheckOperation looks whether the worker with this ID has recorded this journal. A record that is missing or cut
// short is an errdefs not-found error: nothing was changed yet then. The record of another journal is a
// [DamagedError].
func (s *Store) CheckOperation(worker, journal string) error {
	path, err := s.operationPath(worker)
	if err != nil {
		return err
	}
	f, err := openRegular(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("no operation of worker %s is recorded: %w", worker, errdefs.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("check operation: %w", err)
	}
	defer f.Close()
	recorded, err := io.ReadAll(io.LimitReader(f, sha256.Size+1))
	if err != nil {
		return fmt.Errorf("check operation: %w", err)
	}
	if len(recorded) < sha256.Size {
		return fmt.Errorf("the record of worker %s is cut short: %w", worker, errdefs.ErrNotFound)
	}
	sum, err := s.operationSum(worker, journal)
	if err != nil {
		return err
	}
	if !hmac.Equal(sum, recorded) {
		return &DamagedError{Pack: "operations/" + worker, Offset: -1, Reason: "it is not the record of this journal"}
	}
	return nil
}

// ForgetOperation removes the record of an operation that is over.
func (s *Store) ForgetOperation(worker string) error {
	path, err := s.operationPath(worker)
	if err == nil {
		err = s.disk.remove(path)
	}
	if err != nil {
		return fmt.Errorf("forget operation: %w", err)
	}
	return nil
}

func (s *Store) operationPath(worker string) (string, error) {
	if !validOperation.MatchString(worker) {
		return "", fmt.Errorf("operation of worker %.100q: %w", worker, errdefs.ErrInvalidArgument)
	}
	return s.path("operations", worker), nil
}

// operationSum is what a record holds. The worker's ID makes a copy of it worthless.
func (s *Store) operationSum(worker, journal string) ([]byte, error) {
	key, err := readKey(s.path(keyFile))
	if err != nil {
		return nil, fmt.Errorf("read the store's key: %w", err)
	}
	if len(key) != manifest.KeyLength {
		return nil, &DamagedError{Pack: keyFile, Offset: -1, Reason: "the store has no key"}
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("operation\n" + worker + "\n" + journal))
	return mac.Sum(nil), nil
}

// sweepOperations removes records that are too old to be of any use.
func (s *Store) sweepOperations(now time.Time) error {
	all, err := os.ReadDir(s.path("operations"))
	if err != nil {
		return fmt.Errorf("sweep operations: %w", err)
	}
	for _, entry := range all {
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) <= recordAge {
			continue // it is gone, or young enough
		}
		if err := s.ForgetOperation(entry.Name()); err != nil && !errdefs.IsInvalidArgument(err) {
			return err
		}
	}
	return nil
}
