//go:build !workers

package volumebackup

import (
	"fmt"
	"runtime"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/workerimage"
)

// embeddedImage fails: this build carries no workers.
func embeddedImage(arch string) (workerimage.Image, error) {
	return workerimage.Image{}, fmt.Errorf("this build for %s/%s carries no worker for linux/%s engines, and so cannot archive volumes: build it with install.sh, which adds the workers (%w)",
		runtime.GOOS, runtime.GOARCH, arch, cerrdefs.ErrNotImplemented)
}
