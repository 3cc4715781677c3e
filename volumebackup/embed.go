//go:build workers

package volumebackup

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
)

// workers holds Linux builds of worker/standalone, each as
// workers/linux-<arch>.gz. install.sh --workers makes them.
//
//go:embed workers/*.gz
var workers embed.FS

// maxWorker bounds the size of a worker that is unpacked, in bytes.
const maxWorker = 256 << 20

// embeddedWorker is a worker that was built into this program.
func embeddedWorker(arch string) (binary, error) {
	packed, err := workers.ReadFile("workers/linux-" + arch + ".gz")
	if err != nil {
		return binary{}, fmt.Errorf("this build carries no worker for linux/%s engines: %w", arch, err)
	}
	return newBinary(packed, gunzip), nil
}

func gunzip(packed []byte) ([]byte, error) {
	decoder, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack worker: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(decoder, maxWorker))
	if err != nil {
		return nil, fmt.Errorf("unpack worker: %w", err)
	}
	return content, nil
}
