package volumebackup

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
)

// ownBinary is this program itself, which is a worker too, read once.
var ownBinary = sync.OnceValues(func() (binary, error) {
	content, err := os.ReadFile("/proc/self/exe") // also when the file was replaced meanwhile
	if err != nil {
		return binary{}, fmt.Errorf("read this program: %w", err)
	}
	return newBinary(content), nil
})

// localBinary is the worker for engines on this machine's architecture.
var localBinary = sync.OnceValues(func() (binary, error) {
	content, err := embeddedWorker(runtime.GOARCH)
	if cerrdefs.IsNotImplemented(err) && runtime.GOOS == "linux" {
		return ownBinary()
	}
	if err != nil {
		return binary{}, err
	}
	return newBinary(content), nil
})

// prepare reads and hashes the worker's binary while the engine is asked which
// one it needs.
func prepare() {
	go localBinary() //nolint:errcheck // asked for again when it is needed
}

// workerFor finds the worker for an engine: one that was built into this
// program, else the program itself if it runs on the same platform.
func workerFor(engineOS, arch string) (binary, error) {
	if engineOS != "linux" {
		return binary{}, fmt.Errorf("the volumes of %s engines cannot be archived: %w", engineOS, cerrdefs.ErrNotImplemented)
	}
	if arch == runtime.GOARCH {
		return localBinary()
	}
	content, err := embeddedWorker(arch)
	if err != nil {
		return binary{}, err
	}
	return newBinary(content), nil
}
