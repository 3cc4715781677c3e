package dockerop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/docker/docker/client"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// While the engine cannot be reached nothing can be rolled back, and nobody else would do it.
func TestRollbackWaitsForTheEngine(t *testing.T) {
	failure := errors.New("failure")
	for _, tc := range []struct {
		name     string
		breaks   int // how often the connection breaks
		want     []string
		complete bool
	}{
		{"never broken", 0, []string{"second", "first"}, true},
		{"broken for a while", 3, []string{"second", "second", "second", "second", "first"}, true},
		{"broken for good", 1 << 20, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var did []string
				var got enginetest.Events
				rollback := dockerop.Rollback{Progress: got.Progress}
				rollback.Add(func(context.Context) error { did = append(did, "first"); return nil })
				rollback.Add(func(context.Context) error {
					did = append(did, "second")
					if len(did) <= tc.breaks {
						return client.ErrorConnectionFailed("tcp://engine") //nolint:staticcheck // SA1019: there is no other way to make one
					}
					return nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				cancel() // Ctrl-C
				err := failure
				rollback.Unless(ctx, &err)
				assert.ErrorIs(t, err, failure)
				assert.Equal(t, client.IsErrConnectionFailed(err), !tc.complete)
				if tc.complete {
					assert.DeepEqual(t, did, tc.want)
				}
				assert.Equal(t, len(got.All) > 0, tc.breaks > 0)
			})
		})
	}
}
