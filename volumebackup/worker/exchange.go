//go:build linux

package worker

import (
	"io"
	"sync"
	"time"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

const (
	// progressInterval keeps progress to ten events a second, unless another is asked for.
	progressInterval = 100 * time.Millisecond

	// maxWarnings is how many warnings of one request are sent; the result has the count of all.
	maxWarnings = 1000
)

// exchange is what a handler has besides the arguments of its request: it tells the client what happens, and reads
// and writes the bytes that go along.
type exchange struct {
	bytes    io.ReadWriter // from the client and to it
	emit     func(protocol.Event)
	interval time.Duration // of progress
	counter  archive.Counter

	mu       sync.Mutex
	warnings int
}

// Warn implements archive.Reporter.
func (e *exchange) Warn(mount int, path, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.warnings++; e.warnings > maxWarnings {
		return
	}
	e.emit(protocol.Event{Type: protocol.TypeWarning, Warning: &protocol.Warning{
		Mount: mount, Path: protocol.Path(path), Message: message,
	}})
}

// waiting tells that the request waits for others who use the store.
func (e *exchange) waiting() {
	e.emit(protocol.Event{Type: protocol.TypeProgress, Progress: &protocol.Progress{Phase: "waiting: another operation uses the store"}})
}

// showProgress sends how far the request is, until stop is called.
func (e *exchange) showProgress(phase string) (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticks := time.NewTicker(e.interval)
		defer ticks.Stop()
		var last protocol.Progress
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
			}
			now := e.progress(phase)
			if now != last {
				e.emit(protocol.Event{Type: protocol.TypeProgress, Progress: &now})
				last = now
			}
		}
	})
	return func() {
		close(done)
		group.Wait()
	}
}

// progress is how far the request is. If the total was too low, progress raises it.
func (e *exchange) progress(phase string) protocol.Progress {
	now := protocol.Progress{Phase: phase, Files: e.counter.Files.Load(), Bytes: e.counter.Bytes.Load(), Total: e.counter.Total.Load()}
	if now.Total != 0 {
		now.Total = max(now.Total, now.Bytes)
	}
	return now
}
