package enginetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
)

// ClientDies is what a client leaves that is killed: its workers end as their input does.
func (f *Docker) ClientDies() {
	f.Mu.Lock() // what an operation asked ahead may still be under way
	defer f.Mu.Unlock()
	f.Dead = false
	f.Randomness += 50
	for _, c := range f.Containers {
		if c.Config.Image == WorkerImage && c.State == "running" {
			c.End(f.Clock)
		}
	}
}

// Wait lets time pass on the engine.
func (f *Docker) Wait(d time.Duration) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Clock = f.Clock.Add(d)
}

// Data is what the volume data holds.
func (f *Docker) Data() string { return f.FindVolume("data").Content }

// AnonymousOf is the anonymous volume of a container.
func (f *Docker) AnonymousOf(t *testing.T, name string) *FakeVolume {
	t.Helper()
	for _, m := range f.FindContainer(name).Mounts {
		if m.Destination == "/anonymous" {
			return f.FindVolume(m.Name)
		}
	}
	t.Fatalf("%s has no anonymous volume", name)
	return nil
}

// Lock is the name of the worker that locks a container, under whatever name that is now.
func (f *Docker) Lock(name string) string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, c := range f.Containers {
		if j, err := pending.ReadJournal(c.Config.Labels); err == nil && j.Name == name {
			return c.Name
		}
	}
	return ""
}

// By is what somebody else does to a container, past the engine's faults and hooks.
func (f *Docker) By(name string, paused ...bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, p := range paused {
		f.SetPaused(f.FindContainer(name), p)
	}
}

func (f *Docker) Count(call string) int {
	n := 0
	for _, c := range f.Calls {
		if strings.HasPrefix(c, call) {
			n++
		}
	}
	return n
}

// NoGuard watches over nothing.
func NoGuard(context.Context, dockerop.Watched) (release func(), err error) { return func() {}, nil }
