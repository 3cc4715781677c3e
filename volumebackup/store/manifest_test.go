//go:build linux

package store

import (
	"errors"
	"os"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Whatever byte of a manifest changes, reading it is a loss of data that says in which file.
func TestADamagedManifestIsDamage(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	publish(t, s, "id", []string{"one", "two"})
	path := s.path("snapshots", "id", "0.man")
	good, err := os.ReadFile(path)
	assert.NilError(t, err)
	read := func(content []byte) error {
		assert.NilError(t, os.WriteFile(path, content, 0o600))
		m, err := s.OpenManifest("id", 0)
		if err != nil {
			return err
		}
		defer m.Close()
		return m.eachLocation(func(manifest.Location) {})
	}
	assert.NilError(t, read(good))
	found := 0
	for i := range good {
		bad := append([]byte{}, good...)
		bad[i] ^= 1
		err := read(bad)
		if err == nil {
			continue // a bit that zstd does not use; package manifest counts them
		}
		damaged, ok := errors.AsType[*DamagedError](err)
		assert.Assert(t, ok, "byte %d: %v", i, err)
		assert.Equal(t, damaged.Pack, "snapshots/id/0.man")
		found++
	}
	assert.Assert(t, found > len(good)-8, "%d of %d", found, len(good))
}
