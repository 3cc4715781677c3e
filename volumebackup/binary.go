package volumebackup

import (
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
)

// binary is a worker for the engine.
type binary struct {
	ref    string // of its image
	unpack func() ([]byte, error)
}

// newBinary names the image after what is packed: the name is needed for every worker, the
// content only for the first one.
func newBinary(packed []byte, unpack func([]byte) ([]byte, error)) binary {
	sum := sha256.Sum256(packed)
	return binary{
		ref:    fmt.Sprintf("%s:%x", workerRepository, sum[:6]),
		unpack: func() ([]byte, error) { return unpack(packed) },
	}
}

// asIs unpacks what is not packed.
func asIs(content []byte) ([]byte, error) { return content, nil }

// ownBinary is this program itself, which is a worker too, read once.
var ownBinary = sync.OnceValues(func() (binary, error) {
	content, err := os.ReadFile("/proc/self/exe") // also when the file was replaced meanwhile
	if err != nil {
		return binary{}, fmt.Errorf("read this program: %w", err)
	}
	return newBinary(content, asIs), nil
})

// localBinary is the worker for engines on this machine's architecture.
var localBinary = sync.OnceValues(func() (binary, error) {
	b, err := embeddedWorker(runtime.GOARCH)
	if cerrdefs.IsNotImplemented(err) && runtime.GOOS == "linux" {
		return ownBinary()
	}
	return b, err
})

// hashAhead reads and hashes the worker's binary while the engine is asked which
// one it needs.
func hashAhead() {
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
	return embeddedWorker(arch)
}
