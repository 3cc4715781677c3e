//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// makeFiles makes the files to which directwriter writes. The last one is archived block by block.
func makeFiles(t *testing.T, dir string) {
	t.Helper()
	for n, length := range []int{128 << 10, 128 << 10, 128 << 10, 2 << 20} {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("file-%d", n)))
		assert.NilError(t, err)
		_, err = f.Write(make([]byte, length))
		assert.NilError(t, errors.Join(err, f.Sync(), f.Close()))
	}
}

// changedSince tells whether writes have begun.
func changedSince(t *testing.T, dir string, since time.Time) bool {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "file-3"))
	assert.NilError(t, err)
	return info.ModTime().After(since)
}

// slowDisk mounts a new disk of 32 MB on a directory, and returns the device.
func slowDisk(t *testing.T, dir string) string {
	t.Helper()
	run := func(args ...string) string {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		assert.NilError(t, err, "%v: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	image := filepath.Join(t.TempDir(), "disk")
	assert.NilError(t, os.WriteFile(image, nil, 0o600))
	assert.NilError(t, os.Truncate(image, 32<<20))
	run("mkfs.ext4", "-q", image)
	device := run("losetup", "--find", "--show", image)
	t.Cleanup(func() { run("losetup", "--detach", device) })
	run("mount", device, dir)
	t.Cleanup(func() { run("umount", "--lazy", dir) })
	return device
}

// directwriter runs the program of that name, and returns what it prints.
func directwriter(args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(configDir, "directwriter"), args...).Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, stderrOf(err))
	}
	return strings.TrimSpace(string(out)), nil
}

// checkCrash restores a snapshot as a copy, and checks that it holds what a crash would have left.
func (v volumesTest) checkCrash(name string) {
	v.Helper()
	copied := v.prefix + "-copy"
	v.docker("snapshot", "restore", "--store", v.prefix+"-store", "--no-start", "--name", copied, v.prefix+"-web:"+name)
	_, err := directwriter("-check", v.directories(copied)["/0"])
	assert.NilError(v, err)
	v.removeWithVolumes(copied)
}

// A program writes past the page cache to a disk that takes two seconds for each write. A snapshot taken meanwhile holds what
// a crash would have left. The next one, of the stopped container, is exact, and so is a restore in place.
func TestDirectWritesInFlight(t *testing.T) {
	t.Parallel()
	t.Run("asynchronous", func(t *testing.T) {
		t.Parallel()
		testDirectWrites(t, "all")
	})
	t.Run("synchronous", func(t *testing.T) { // no engine can pause a process that waits for its disk
		t.Parallel()
		testDirectWrites(t, "none", "-sync")
	})
}

func testDirectWrites(t *testing.T, pause string, flags ...string) {
	t.Helper()
	v := volumesTest{t, ownPrefix(t, "direct")}
	container, volume := v.prefix+"-web", v.prefix+"-data"
	v.docker("volume", "create", volume)
	dir := v.docker("volume", "inspect", "--format", "{{.Mountpoint}}", volume)
	device := slowDisk(t, dir)
	makeFiles(t, dir)
	t.Cleanup(func() { v.docker("rm", "--force", container) }) // else the disk is in use
	v.docker(append([]string{
		"create", "--name", container, "--network", "none", "--device-write-bps", device + ":256kb",
		"--volume", volume + ":/0", "busybox", "/directwriter",
	}, append(flags, "/0")...)...)
	v.docker("cp", filepath.Join(configDir, "directwriter"), container+":/directwriter")
	for range rounds() {
		start := time.Now()
		v.docker("start", container)
		assert.Assert(t, eventually(func() bool { return changedSince(t, dir, start) }))
		v.docker("snapshot", "create", "--store", v.prefix+"-store", "--reuse", "--pause="+pause, container, "running")
		_, _ = docker("kill", container) // which fails if the disk holds the process up for longer than the engine waits
		v.docker("wait", container)
		v.docker("snapshot", "create", "--store", v.prefix+"-store", "--reuse", container, "stopped")
		v.checkRestored("stopped", v.describe(container))
		if pause != "none" {
			v.checkCrash("running")
		}
	}
	want := v.describe(container)
	v.docker("start", container)
	v.docker("snapshot", "restore", "--store", v.prefix+"-store", "--replace", "--force", "--no-start", container+":stopped")
	archivetest.Equal(t, v.describe(container)["/0"], want["/0"])
}
