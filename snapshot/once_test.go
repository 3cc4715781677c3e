package snapshot

import (
	"context"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// A client that is killed at any call, and the same request again, make one snapshot, and the answer
// names it from then on.
func TestAKeyMakesOneSnapshot(t *testing.T) {
	for name, host := range map[string]*container.HostConfig{"no volume": {}, "a volume": {Binds: []string{"data:/data"}}} {
		o := capture.Options{Container: "web", Name: "one", IdempotencyKey: "k=1"}
		scene := func(t *testing.T) *enginetest.Docker {
			t.Helper()
			docker := enginetest.New()
			docker.Create(t, "web", &container.Config{}, host).State = "running"
			docker.Randomness = 100
			return docker
		}
		operate := func(ctx context.Context, e *Engine) error {
			_, err := e.Create(ctx, o, nil)
			return err
		}
		t.Run(name, func(t *testing.T) {
			kinds := []enginetest.FaultKind{enginetest.FaultDie, enginetest.FaultLoseAnswer, enginetest.FaultRefuse}
			withFaults(t, kinds, scene, operate, func(t *testing.T, outcome enginetest.Outcome) {
				docker := outcome.Docker
				docker.ClientDies()
				var ids [3]labels.ID
				for i := range ids {
					created, err := engineOf(docker).Create(t.Context(), o, nil)
					assert.NilError(t, err)
					ids[i] = created.ID
				}
				assert.Assert(t, ids[0] == ids[1] && ids[1] == ids[2], "%v", ids)
				all, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
				assert.NilError(t, err)
				assert.Equal(t, len(all), 1)
				assert.Equal(t, all[0].IdempotencyKey, "k=1")
			})
		})
	}
}

func TestOtherKeysAndOtherContainersMakeOthers(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	docker.Run(t, "db")
	ids := map[labels.ID]bool{}
	for _, o := range []capture.Options{{Container: "web", IdempotencyKey: "a"}, {Container: "web", IdempotencyKey: "b"}, {Container: "db", IdempotencyKey: "a"}, {Container: "web"}} {
		ids[snapshotOf(t, docker, o).ID] = true
	}
	assert.Equal(t, len(ids), 4)
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", IdempotencyKey: "a\nb"}, nil)
	assert.ErrorContains(t, err, "invalid idempotency key")
}

func TestManyWithOneKeyAtOnceMakeOneSnapshot(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	docker.Service.Waiting = func(string) {}
	var group sync.WaitGroup
	var mu sync.Mutex
	ids := map[labels.ID]bool{}
	for range 5 {
		group.Go(func() {
			created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", IdempotencyKey: "k"}, nil)
			mu.Lock()
			defer mu.Unlock()
			ids[created.ID] = true
			assert.Check(t, err)
		})
	}
	group.Wait()
	assert.Equal(t, len(ids), 1)
}
