//go:build linux && !cgo

package worker

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// A process that restores can change volumes and what the store records of them, and nothing else, in no way.
func TestANarrowedProcess(t *testing.T) {
	if _, _, missing := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); missing != 0 {
		t.Skipf("this kernel cannot take rights away from a process: %v", missing)
	}
	dir := t.TempDir()
	assert.NilError(t, os.Mkdir(filepath.Join(dir, "store"), 0o700))
	opened, err := store.Open(filepath.Join(dir, "store"))
	assert.NilError(t, err)
	assert.NilError(t, opened.Close())
	assert.NilError(t, os.MkdirAll(filepath.Join(dir, "mnt", "0", "folder"), 0o755))
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "store", "snapshots", "pack"), []byte("pack"), 0o600))
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "elsewhere"), nil, 0o600))
	assert.Equal(t, runProbe(t, dir), `read a pack: <nil>
write a pack: permission denied
truncate a pack: permission denied
remove a pack: permission denied
make a pack: permission denied
link a pack: permission denied
write elsewhere: permission denied
make a head: <nil>
move a head: <nil>
make a snapshot of a head: permission denied
make a file: <nil>
move a file: <nil>
link a file: <nil>
make a pipe: <nil>
`)
	content, err := os.ReadFile(filepath.Join(dir, "store", "snapshots", "pack"))
	assert.NilError(t, err)
	assert.Equal(t, string(content), "pack")
}
