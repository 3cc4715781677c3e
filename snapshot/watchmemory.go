package snapshot

import (
	"context"
	"errors"
	"time"
)

// meterInterval is how often the use of memory is measured: a program that goes on allocating has to
// be noticed before the kernel kills it.
const meterInterval = 500 * time.Millisecond

// meter measures how much memory a container uses, until it dies. One without a limit has nothing to
// measure.
func (w *watcher) meter(ctx context.Context, id, name string) error {
	if w.meters[id] != nil {
		return nil
	}
	c, err := w.engine.docker.InspectIfThere(ctx, id)
	switch {
	case err != nil || c == nil:
		return err
	case c.HostConfig == nil || c.HostConfig.Memory == 0:
		w.refuse(id, name, errors.New("it has no memory limit, so it is not captured by its use of memory"))
		return nil
	}
	metering, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.meters[id] = stop
	w.working.Go(func() {
		tick := time.NewTicker(meterInterval)
		defer tick.Stop()
		for {
			if percent, err := w.engine.docker.MemoryUse(metering, id); err == nil { // else the engine is away, or its end comes
				select {
				case w.measured <- measured{id, percent}:
				case <-metering.Done():
				}
			}
			select {
			case <-tick.C:
			case <-metering.Done():
				return
			}
		}
	})
	return nil
}

// unmeter ends measuring.
func (w *watcher) unmeter(id string) {
	if stop := w.meters[id]; stop != nil {
		stop()
		delete(w.meters, id)
	}
}
