//go:build workers

package volumebackup

import (
	"embed"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/workerimage"
)

// images holds the images of worker/standalone, each as workers/linux-<arch>.tar.gz.
// install.sh --workers makes them.
//
//go:embed workers/*.tar.gz
var images embed.FS

// embeddedImage is a worker's image that was built into this program.
func embeddedImage(arch string) (workerimage.Image, error) {
	packed, err := images.ReadFile("workers/linux-" + arch + ".tar.gz")
	if err != nil {
		return workerimage.Image{}, fmt.Errorf("this build carries no worker for linux/%s engines: %w", arch, err)
	}
	return workerimage.Unpack(packed)
}
