package snapshot

import (
	"context"
	"time"

	"github.com/docker/docker/api/types/system"
)

// engineInfo is what an engine says of itself.
type engineInfo struct {
	id         string
	imageStore string // which of the image stores that it may have is in use
	systemTime string
}

// driverType is the line of an engine's answer that tells an image store of
// containerd from one of the engine's own.
const driverType = "driver-type"

func newEngineInfo(info system.Info) engineInfo {
	e := engineInfo{id: info.ID, imageStore: info.Driver, systemTime: info.SystemTime}
	for _, line := range info.DriverStatus {
		if line[0] == driverType {
			e.imageStore += "/" + line[1]
		}
	}
	return e
}

// now is what the engine's clock shows. Times in its answers can be compared with
// no other.
func (e engineInfo) now() (time.Time, error) {
	now, err := time.Parse(time.RFC3339Nano, e.systemTime)
	return now, describe(err, "read the engine's time")
}

// askEngine asks the engine who it is.
func (e *Engine) askEngine(ctx context.Context) (engineInfo, error) {
	info, err := e.docker.Info(ctx)
	return newEngineInfo(info), describe(err, "ask the engine who it is")
}
