package enginetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// Outcome says how an operation ended in which one call went wrong.
type Outcome struct {
	Docker        *Docker
	Kind          FaultKind
	Before, After string // the engine's World
	Err           error
}

// Hit tells whether the call that went wrong begins with one of these.
func (o Outcome) Hit(calls ...string) bool {
	for _, call := range calls {
		if strings.HasPrefix(o.Docker.Fired, call) {
			return true
		}
	}
	return false
}

// EachFault runs an operation once for each call that it makes and each way in which that can go
// wrong, always in a new scene, and has the outcome checked.
func EachFault(t *testing.T, scene func(*testing.T) *Docker, operate func(context.Context, *Docker) error, check func(*testing.T, Outcome)) {
	t.Helper()
	Faults(t, []FaultKind{FaultRefuse, FaultLoseAnswer, FaultCancelBefore, FaultCancelAfter}, scene, operate, check)
}

// Faults does what [EachFault] does, with only these kinds of faults.
func Faults(t *testing.T, kinds []FaultKind, scene func(*testing.T) *Docker, operate func(context.Context, *Docker) error, check func(*testing.T, Outcome)) {
	t.Helper()
	step := archivetest.Stride(t)
	for i, kind := range kinds {
		for n := 1 + i%step; ; n += step {
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
