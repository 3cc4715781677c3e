//go:build linux

package store

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// fingerprintIn opens a store and takes a fingerprint there.
func fingerprintIn(t *testing.T, dir, block string) manifest.Fingerprint {
	t.Helper()
	s, err := Open(dir)
	assert.NilError(t, err)
	key, err := s.FingerprintKey()
	assert.NilError(t, err)
	return key.Fingerprint([]byte(block))
}

func TestFingerprintsAreOfOneStoreAndOneBlock(t *testing.T) {
	dir := t.TempDir()
	first := fingerprintIn(t, dir, "block")
	assert.Assert(t, first != 0)
	assert.Equal(t, fingerprintIn(t, dir, "block"), first)
	assert.Assert(t, fingerprintIn(t, dir, "other") != first)
	assert.Assert(t, fingerprintIn(t, t.TempDir(), "block") != first)
}

func TestAKeyThatWasCutShortIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	first := fingerprintIn(t, dir, "block")
	for _, content := range []string{"", "short", string(make([]byte, 100))} {
		assert.NilError(t, os.WriteFile(filepath.Join(dir, keyFile), []byte(content), 0o600))
		again := fingerprintIn(t, dir, "block")
		assert.Assert(t, again != first)
		assert.Equal(t, fingerprintIn(t, dir, "block"), again)
	}
}

func TestWhatIsNoKeyIsReplaced(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	first := fingerprintIn(t, elsewhere, "block")
	path := filepath.Join(dir, keyFile)
	for name, put := range map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":      linkTo(elsewhere, keyFile),
		"FIFO":      fifo,
	} {
		assert.NilError(t, os.RemoveAll(path), name)
		assert.NilError(t, put(path), name)
		again := fingerprintIn(t, dir, "block")
		assert.Assert(t, again != first, name)
		assert.Equal(t, fingerprintIn(t, dir, "block"), again, name)
	}
	assert.Equal(t, fingerprintIn(t, elsewhere, "block"), first, "nothing outside is touched")
}

// Several that come first end up with one key.
func TestOneKeyWins(t *testing.T) {
	dir := t.TempDir()
	var fingerprints [8]manifest.Fingerprint
	var group sync.WaitGroup
	for i := range fingerprints {
		group.Go(func() { fingerprints[i] = fingerprintIn(t, dir, "block") })
	}
	group.Wait()
	for _, one := range fingerprints {
		assert.Equal(t, one, fingerprints[0])
	}
}
