//go:build linux

package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"gotest.tools/v3/assert"
)

func TestOperationIsKnownByItsRecord(t *testing.T) {
	root := t.TempDir()
	s, err := Open(root)
	assert.NilError(t, err)
	t.Cleanup(func() { assert.NilError(t, s.Close()) })
	now := time.Now()
	worker, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	assert.Assert(t, errdefs.IsNotFound(s.CheckOperation(worker, "journal")))
	assert.NilError(t, s.RecordOperation(worker, "journal", now))
	assert.NilError(t, s.CheckOperation(worker, "journal"))
	assert.ErrorType(t, s.CheckOperation(worker, "another"), &DamagedError{})

	// A record that was copied is none.
	record := filepath.Join(root, "operations", worker)
	content, err := os.ReadFile(record)
	assert.NilError(t, err)
	assert.NilError(t, os.WriteFile(filepath.Join(root, "operations", other), content, 0o600))
	assert.ErrorType(t, s.CheckOperation(other, "journal"), &DamagedError{})

	// Nor is one under another key.
	key := filepath.Join(root, keyFile)
	assert.NilError(t, os.WriteFile(key, make([]byte, 32), 0o600))
	assert.ErrorType(t, s.CheckOperation(worker, "journal"), &DamagedError{})
	assert.NilError(t, os.Remove(key))
	assert.ErrorType(t, s.CheckOperation(worker, "journal"), &DamagedError{})

	// One that was cut short by a crash was followed by nothing.
	assert.NilError(t, os.Truncate(record, 31))
	assert.Assert(t, errdefs.IsNotFound(s.CheckOperation(worker, "journal")))
	assert.NilError(t, s.ForgetOperation(worker))
	assert.NilError(t, s.ForgetOperation(worker))
	assert.Assert(t, errdefs.IsNotFound(s.CheckOperation(worker, "journal")))
	for _, bad := range []string{"", "../key", strings.Repeat("x", 64), worker + "/x"} {
		assert.Assert(t, errdefs.IsInvalidArgument(s.RecordOperation(bad, "journal", now)), bad)
		assert.Assert(t, errdefs.IsInvalidArgument(s.CheckOperation(bad, "journal")), bad)
		assert.Assert(t, s.ForgetOperation(bad) != nil, bad)
	}
}

func TestOldRecordsAreSwept(t *testing.T) {
	root := t.TempDir()
	s, err := Open(root)
	assert.NilError(t, err)
	t.Cleanup(func() { assert.NilError(t, s.Close()) })
	now := time.Now()
	old, young, next := strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64)
	for _, worker := range []string{old, young} {
		assert.NilError(t, s.RecordOperation(worker, "journal", now))
	}
	before := now.Add(-recordAge - time.Hour)
	assert.NilError(t, os.Chtimes(filepath.Join(root, "operations", old), before, before))
	assert.NilError(t, s.RecordOperation(next, "journal", now))
	assert.Assert(t, errdefs.IsNotFound(s.CheckOperation(old, "journal")))
	assert.NilError(t, s.CheckOperation(young, "journal"))
	assert.NilError(t, s.CheckOperation(next, "journal"))
}

// A record that could not be written leaves nothing.
func TestOperationIsRecordedOrNot(t *testing.T) {
	worker := strings.Repeat("ab", 32)
	for n := 1; ; n++ {
		root := t.TempDir()
		calls := 0
		s, err := OpenFaulty(root, nil)
		assert.NilError(t, err)
		_, err = s.FingerprintKey()
		assert.NilError(t, err)
		s.disk.fault = func(string, string) error {
			if calls++; calls == n {
				return os.ErrPermission
			}
			return nil
		}
		err = s.RecordOperation(worker, "journal", time.Time{})
		assert.Equal(t, err == nil, s.CheckOperation(worker, "journal") == nil, "change %d: %v", n, err)
		assert.NilError(t, s.Close())
		if calls < n {
			return
		}
	}
}
