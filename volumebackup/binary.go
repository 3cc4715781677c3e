package volumebackup

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/workerimage"
)

// ownImage is the image of this program itself, which is a worker too. The
// program is read once.
var ownImage = sync.OnceValues(func() (workerimage.Image, error) {
	content, err := os.ReadFile("/proc/self/exe") // also when the file was replaced meanwhile
	if err != nil {
		return workerimage.Image{}, fmt.Errorf("read this program: %w", err)
	}
	return workerimage.Make(runtime.GOARCH, content)
})

// localImage is the worker's image for engines on this machine's architecture.
var localImage = sync.OnceValues(func() (workerimage.Image, error) {
	i, err := embeddedImage(runtime.GOARCH)
	if cerrdefs.IsNotImplemented(err) && runtime.GOOS == "linux" {
		return ownImage()
	}
	return i, err
})

// hashAhead reads and hashes the worker's program in the background, while we ask the engine which one it needs.
func hashAhead() {
	go localImage() //nolint:errcheck // asked for again when it is needed
}

// imageFor finds the worker's image for an engine: one that was built into this
// program, else one of the program itself if it runs on the same platform.
func imageFor(engineOS, arch string) (workerimage.Image, error) {
	if engineOS != "linux" {
		return workerimage.Image{}, fmt.Errorf("the volumes of %s engines cannot be archived: %w", engineOS, cerrdefs.ErrNotImplemented)
	}
	if arch == runtime.GOARCH {
		return localImage()
	}
	return embeddedImage(arch)
}

// isOfThisBuild tells whether an image is one that this program loads into
// engines of some architecture.
func isOfThisBuild(imageID string) bool {
	for _, arch := range []string{"amd64", "arm64", runtime.GOARCH} {
		if i, err := imageFor("linux", arch); err == nil && i.HasID(imageID) {
			return true
		}
	}
	return false
}
