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

// updates answers calls that update a container.
type updates struct {
	Docker
	answer func() error
}

func (u updates) ContainerUpdate(context.Context, string, container.UpdateConfig) (container.UpdateResponse, error) {
	return container.UpdateResponse{}, u.answer()
}

// These are the words of engines, about a container that they start again and again.
func TestTheRestartPolicyOfAContainerThatIsEnding(t *testing.T) {
	for engine, words := range map[string]string{
		"20.10": "Cannot update container " + someID + ": runc did not terminate successfully: exit status 1: container not running\n: unknown",
		"29":    "Cannot update container " + someID + ": cannot update a stopped container",
	} {
		for name, tc := range map[string]struct {
			after time.Duration // it has ended
			words string        // that are returned
		}{
			"it ends":   {policyPatience / 2, ""},
			"it hangs":  {2 * policyPatience, words},
			"other one": {0, "no such container"},
		} {
			t.Run(engine+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					e := New(updates{answer: func() error {
						switch {
						case time.Since(began) < tc.after:
							return errors.New(words)
						case tc.words == "":
							return nil
						}
						return errors.New(tc.words)
					}}, nil)
					err := e.SetRestartPolicy(t.Context(), someID, container.RestartPolicy{})
					if tc.words == "" {
						assert.NilError(t, err)
					} else {
						assert.ErrorContains(t, err, tc.words)
					}
					assert.Assert(t, time.Since(began) <= policyPatience+time.Second)
				})
			})
		}
	}
}
