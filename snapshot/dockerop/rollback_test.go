package dockerop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// While the engine cannot be reached, or ends, nothing can be rolled back, and nobody else would do it.
func TestRollbackWaitsForTheEngine(t *testing.T) {
	failure := errors.New("failure")
	broken := client.ErrorConnectionFailed("tcp://engine") //nolint:staticcheck // SA1019: there is no other way to make one
	ending := fmt.Errorf("get v: database not open: %w", cerrdefs.ErrInternal)
	for _, tc := range []struct {
		name     string
		failure  error
		breaks   int // how often it comes
		want     []string
		complete bool
		within   time.Duration
	}{
		{"never broken", broken, 0, []string{"second", "first"}, true, time.Second},
		{"broken for a while", broken, 3, []string{"second", "second", "second", "second", "first"}, true, time.Second},
		{"broken for good", broken, 1 << 20, nil, false, 20 * time.Second},
		{"ending", ending, 3, []string{"second", "second", "second", "second", "first"}, true, time.Second},
		{"failing for good", ending, 1 << 20, nil, false, 6 * time.Second},
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
						return tc.failure
					}
					return nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				cancel() // Ctrl-C
				err, began := failure, time.Now()
				rollback.Unless(ctx, &err)
				assert.ErrorIs(t, err, failure)
				assert.Assert(t, time.Since(began) <= tc.within)
				assert.Equal(t, errors.Is(err, tc.failure), !tc.complete)
				if tc.complete {
					assert.DeepEqual(t, did, tc.want)
				}
				assert.Equal(t, len(got.All) > 0, tc.breaks > 0)
			})
		})
	}
}
