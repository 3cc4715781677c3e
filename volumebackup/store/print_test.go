//go:build linux

package store

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gotest.tools/v3/assert"
)

// printIn opens a store and takes a print there.
func printIn(t *testing.T, dir, block string) uint64 {
	t.Helper()
	s, err := Open(dir)
	assert.NilError(t, err)
	p, err := s.Printer()
	assert.NilError(t, err)
	return p.Print([]byte(block))
}

func TestPrintsAreOfOneStoreAndOneBlock(t *testing.T) {
	dir := t.TempDir()
	first := printIn(t, dir, "block")
	assert.Assert(t, first != 0)
	assert.Equal(t, printIn(t, dir, "block"), first)
	assert.Assert(t, printIn(t, dir, "other") != first)
	assert.Assert(t, printIn(t, t.TempDir(), "block") != first)
}

func TestAKeyThatWasCutShortIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	first := printIn(t, dir, "block")
	for _, content := range []string{"", "short", string(make([]byte, 100))} {
		assert.NilError(t, os.WriteFile(filepath.Join(dir, keyFile), []byte(content), 0o600))
		again := printIn(t, dir, "block")
		assert.Assert(t, again != first)
		assert.Equal(t, printIn(t, dir, "block"), again)
	}
}

// Several that come first end up with one key.
func TestOneKeyWins(t *testing.T) {
	dir := t.TempDir()
	var prints [8]uint64
	var group sync.WaitGroup
	for i := range prints {
		group.Go(func() { prints[i] = printIn(t, dir, "block") })
	}
	group.Wait()
	for _, print := range prints {
		assert.Equal(t, print, prints[0])
	}
}
