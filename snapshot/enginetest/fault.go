package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
)

// Fault is what goes wrong with the call number At, counted from 1.
type Fault struct {
	At   int
	Kind FaultKind
}

// FaultKind is a way in which a call goes wrong.
type FaultKind string

// The faults.
const (
	FaultRefuse       FaultKind = "refuse"        // the call fails and has no effect
	FaultLoseAnswer   FaultKind = "lose answer"   // the call fails, but has its effect
	FaultCancelBefore FaultKind = "cancel before" // Ctrl-C before the call has its effect
	FaultCancelAfter  FaultKind = "cancel after"  // Ctrl-C after the call has had its effect
	FaultDie          FaultKind = "die"           // the client is killed before the call
)

// Disarm removes the fault, and returns the call that it has hit. A question that an operation
// asked early may still be under way.
func (f *Docker) Disarm() (fired string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Fault = Fault{}
	return f.Fired
}

// isDead tells whether the client has been killed.
func (f *Docker) isDead() bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Dead
}

// Before runs do once, before a call that begins with call; skip of these calls come before that.
func (f *Docker) Before(call string, skip int, do func()) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.beforeCall, f.DoBefore = call, func() {
		if skip == 0 {
			do()
			return
		}
		f.Before(call, skip-1, do)
	}
}

// do runs effect for a call. Every method of the engine uses it. It counts the call, and makes it
// go wrong if that is due.
func (f *Docker) do(ctx context.Context, call string, effect func() error) error {
	f.Mu.Lock()
	if f.DoBefore != nil && strings.HasPrefix(call, f.beforeCall) {
		first := f.DoBefore
		f.DoBefore = nil
		f.Mu.Unlock()
		first()
		f.Mu.Lock()
	}
	defer f.Mu.Unlock()
	f.Calls = append(f.Calls, call)
	kind := FaultKind("")
	if len(f.Calls) == f.Fault.At {
		kind, f.Fired = f.Fault.Kind, call
	}
	switch kind {
	case FaultCancelBefore:
		f.Cancel()
	case FaultDie:
		f.Dead = true
	}
	if f.DieAt != "" && strings.HasPrefix(call, f.DieAt) {
		f.DieSkips--
		f.Dead = f.Dead || f.DieSkips < 0
	}
	if f.Dead {
		return fmt.Errorf("injected: nobody is there to %s", call)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	begins := func(prefix string) bool { return prefix != "" && strings.HasPrefix(call, prefix) }
	if kind == FaultRefuse || slices.ContainsFunc(f.Refused, begins) {
		return fmt.Errorf("injected: refused %s", call)
	}
	err := effect()
	if kind == FaultCancelAfter {
		f.Cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err == nil && begins(f.Spoiled) {
		return fmt.Errorf("injected: a conflict after %s: %w", call, cerrdefs.ErrConflict)
	}
	if kind == FaultLoseAnswer {
		return fmt.Errorf("injected: lost the answer to %s", call)
	}
	return err
}

// ClientDies is what happens to the engine when a client is killed: the input of its workers ends,
// and so do they. The next client's calls work again.
func (f *Docker) ClientDies() {
	f.Mu.Lock() // a question that an operation asked early may still be under way
	defer f.Mu.Unlock()
	f.Dead = false
	f.Randomness += 50
	for _, c := range f.Containers {
		if c.Config.Image == WorkerImage && c.State == "running" {
			c.End(f.Clock)
		}
	}
}
