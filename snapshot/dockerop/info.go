package dockerop

import (
	"context"
	"time"

	"github.com/docker/docker/api/types/system"
)

// Info is what an engine says of itself.
type Info struct {
	Id         string
	ImageStore string // which of the image stores that it may have is in use
	systemTime string
}

// driverType is the line of an engine's answer that tells an image store of
// containerd from one of the engine's own.
const driverType = "driver-type"

func newInfo(info system.Info) Info {
	e := Info{Id: info.ID, ImageStore: info.Driver, systemTime: info.SystemTime}
	for _, line := range info.DriverStatus {
		if line[0] == driverType {
			e.ImageStore += "/" + line[1]
		}
	}
	return e
}

// Now is what the engine's clock shows. Times in its answers can be compared with
// no other.
func (e Info) Now() (time.Time, error) {
	now, err := time.Parse(time.RFC3339Nano, e.systemTime)
	return now, Describe(err, "read the engine's time")
}

// Identify asks the engine who it is.
func (e *Engine) Identify(ctx context.Context) (Info, error) {
	info, err := e.Info(ctx)
	return newInfo(info), Describe(err, "ask the engine who it is")
}

// Time is what the engine's clock shows.
func (e *Engine) Time(ctx context.Context) (time.Time, error) {
	info, err := e.Identify(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return info.Now()
}

// TimeOf reads a time of an engine's answer. What it does not know is zero.
func TimeOf(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
