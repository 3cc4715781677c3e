//go:build e2e

package e2e

import (
	"os"
	"os/exec"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdDisk mounts a new small disk at a folder of the script, until the script ends. A script can fill all of it, and
// what it removes is free at once.
func cmdDisk(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "disk FOLDER SIZE")
	dir := ts.MkAbs(args[0])
	image := dir + ".image"
	ts.Check(os.Mkdir(dir, 0o755))
	ts.Check(ts.Exec("truncate", "--size", args[1], image))
	ts.Check(ts.Exec("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image))
	ts.Check(ts.Exec("mount", "-o", "loop", image, dir))
	// Containers may use it until they are swept. The disk and its loop device go with the last of them.
	ts.Defer(func() {
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			ts.Logf("unmount the disk: %v: %s", err, out)
		}
	})
}
