package dockerop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"
)

// starts answers calls that start a container.
type starts struct {
	Docker
	answer func() error
}

func (s starts) ContainerStart(context.Context, string, container.StartOptions) error {
	return s.answer()
}

const someID = "9e8f0c1d2b3a4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"

// These are the words of engine 20.10 with containerd 1.6, seen after kills.
func TestAStartSaysThatSomethingOfTheEarlierRunIsLeft(t *testing.T) {
	for words, stale := range map[string]bool{
		"Error response from daemon: task " + someID + ": already exists: unknown":                                                          true,
		"failed to create shim: OCI runtime create failed: container with given ID already exists: unknown":                                 true,
		"failed to start shim: mkdir /run/containerd/io.containerd.runtime.v2.task/moby/" + someID + ": file exists: unknown":               true,
		"endpoint with name web already exists in network bridge":                                                                           false,
		"failed to start shim: exec: \"containerd-shim\": executable file not found in $PATH":                                               false,
		"driver failed programming external connectivity on endpoint web: Bind for 0.0.0.0:80 failed: port is already allocated, task 7 of": false,
	} {
		e := New(starts{answer: func() error { return errors.New(words) }}, nil)
		err := e.Start(t.Context(), someID)
		assert.ErrorContains(t, err, words)
		found, ok := errors.AsType[*StaleTaskError](err)
		assert.Equal(t, ok, stale, words)
		assert.Assert(t, !ok || found.Container == someID)
	}
}

func TestStartAgainWaitsForTheEngineToClearAway(t *testing.T) {
	for _, tc := range []struct {
		name  string
		after time.Duration // it can be started
		stale bool
	}{
		{"the engine does it", cleanupTimeout / 2, false},
		{"the engine never does it", 2 * cleanupTimeout, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				e := New(starts{answer: func() error {
					if time.Since(began) < tc.after {
						return errors.New("task " + someID + ": already exists: unknown")
					}
					return nil
				}}, nil)
				err := e.StartAgain(t.Context(), someID)
				_, stale := errors.AsType[*StaleTaskError](err)
				assert.Equal(t, stale, tc.stale, "%v", err)
				assert.Equal(t, err != nil, tc.stale)
			})
		})
	}
}
