package dockerop

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/docker/docker/api/types/system"
)

// Info is what an engine says of itself.
type Info struct {
	ID         string
	ImageStore string // the image store in use; an engine may have several
	Images     int    // how many it has
	systemTime string
	machine    string // the architecture, as the kernel calls it
}

// driverType names the line of an engine's answer that distinguishes a containerd image store from
// one of the engine's own.
const driverType = "driver-type"

func newInfo(info system.Info) Info {
	e := Info{ID: info.ID, ImageStore: info.Driver, Images: info.Images, systemTime: info.SystemTime, machine: info.Architecture}
	for _, line := range info.DriverStatus {
		if line[0] == driverType {
			e.ImageStore += "/" + line[1]
		}
	}
	return e
}

// architectures are the names that images have for what kernels call otherwise.
var architectures = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv6l": "arm", "i386": "386", "i686": "386",
}

// Architecture returns that of the engine's machine, as images name it.
func (e Info) Architecture() string { return cmp.Or(architectures[e.machine], e.machine, "amd64") }

// Now returns the time on the engine's clock when it answered. Times in the engine's answers can
// only be compared with that clock.
func (e Info) Now() (time.Time, error) {
	now, err := time.Parse(time.RFC3339Nano, e.systemTime)
	return now, Describe(err, "read the engine's time")
}

// Identify asks the engine for its [Info].
func (e *Engine) Identify(ctx context.Context) (Info, error) { return identify(ctx, e.Docker) }

func identify(ctx context.Context, docker Clock) (Info, error) {
	info, err := docker.Info(ctx)
	return newInfo(info), Describe(err, "ask the engine who it is")
}

// Time asks the engine for the time on its clock.
func (e *Engine) Time(ctx context.Context) (time.Time, error) { return Time(ctx, e.Docker) }

// Clock is the part of the Engine API that [Time] calls.
type Clock interface {
	Info(ctx context.Context) (system.Info, error)
}

// Time asks an engine for the time on its clock.
func Time(ctx context.Context, docker Clock) (time.Time, error) {
	info, err := identify(ctx, docker)
	if err != nil {
		return time.Time{}, err
	}
	return info.Now()
}

// EarlyInfo is an engine's [Info] that was asked for at the beginning of an operation. Info waits
// for the answer. Stop, at the end of the operation, takes a question back that is still open.
type EarlyInfo struct {
	Ctx  context.Context //nolint:containedctx // of the operation, which outlives its steps
	Info func() (Info, error)
	Stop func()
}

// AskInfoEarly asks the engine for its [Info] and returns at once. An engine with the containerd
// image store takes longer to answer that than all the other questions of an operation, so
// operations ask it first.
func (e *Engine) AskInfoEarly(ctx context.Context) EarlyInfo {
	type answer struct {
		info Info
		err  error
	}
	asking, cancel := context.WithCancel(ctx)
	answered := make(chan answer, 1)
	go func() {
		info, err := e.Identify(asking)
		answered <- answer{info, err}
	}()
	wait := sync.OnceValues(func() (Info, error) {
		a := <-answered
		return a.info, a.err
	})
	return EarlyInfo{Ctx: ctx, Info: wait, Stop: func() {
		cancel()
		_, _ = wait()
	}}
}

// TimeOf reads a time in an engine's answer. It returns the zero time for text that it cannot read.
func TimeOf(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
