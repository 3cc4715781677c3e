//go:build !workers

package volumebackup

import (
	"fmt"
	"runtime"

	cerrdefs "github.com/containerd/errdefs"
)

// embeddedWorker fails: this build carries no workers.
func embeddedWorker(arch string) (binary, error) {
	return binary{}, fmt.Errorf("this build for %s/%s carries no worker for linux/%s engines, and so cannot archive volumes: build it with install.sh, which adds the workers (%w)",
		runtime.GOOS, runtime.GOARCH, arch, cerrdefs.ErrNotImplemented)
}
