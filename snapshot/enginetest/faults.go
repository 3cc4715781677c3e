package enginetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// Outcome is how an operation ended in which one call went wrong.
type Outcome struct {
	Docker        *Docker
	Kind          FaultKind
	Before, After string // the world
	Err           error
}

// Hit tells whether the call that went wrong is one of these.
func (o Outcome) Hit(calls ...string) bool {
	for _, call := range calls {
		if strings.HasPrefix(o.Docker.Fired, call) {
			return true
		}
	}
	return false
}

// EachFault runs an operation as often as it makes calls, times the ways in
// which a call can go wrong, each time in a new world, and has the outcome checked.
func EachFault(t *testing.T, scene func(*testing.T) *Docker, operate func(context.Context, *Docker) error, check func(*testing.T, Outcome)) {
	t.Helper()
	Faults(t, []FaultKind{FaultRefuse, FaultLoseAnswer, FaultCancelBefore, FaultCancelAfter}, scene, operate, check)
}

// Faults is EachFault with a choice of them.
func Faults(t *testing.T, kinds []FaultKind, scene func(*testing.T) *Docker, operate func(context.Context, *Docker) error, check func(*testing.T, Outcome)) {
	t.Helper()
	for _, kind := range kinds {
		for n := 1; ; n++ {
			docker := scene(t)
			docker.ForgetCalls()
			ctx, cancel := context.WithCancel(t.Context())
			docker.Fault, docker.Cancel = Fault{At: n, Kind: kind}, cancel
			o := Outcome{Docker: docker, Kind: kind, Before: docker.World()}
			o.Err = operate(ctx, docker)
			o.After = docker.World()
			cancel()
			fired := docker.Disarm()
			if fired == "" {
				assert.NilError(t, o.Err)
				break // n is past the last call
			}
			t.Run(fmt.Sprintf("%s %d %s", kind, n, fired), func(t *testing.T) { check(t, o) })
		}
	}
}
