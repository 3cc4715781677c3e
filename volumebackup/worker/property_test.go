//go:build linux

package worker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

const (
	// roundsVariable sets how many rounds of the property test run, seedVariable the one to begin with.
	roundsVariable = "DOCKER_SNAPSHOT_TEST_ROUNDS"
	seedVariable   = "DOCKER_SNAPSHOT_TEST_SEED"

	defaultRounds = 8
	depth         = 12 // snapshots in each round
	inPlace       = 1  // the mount that everything is restored into, one after the other
)

// TestAnySnapshotRestores makes random trees and random changes to them, and
// deletes snapshots in random order: every one that remains restores to what it was, in
// place as well as into a new volume.
func TestAnySnapshotRestores(t *testing.T) {
	rounds, first := archivetest.Number(t, roundsVariable, defaultRounds), archivetest.Number(t, seedVariable, 1)
	for seed := first; seed < first+rounds; seed++ {
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := &round{world: newWorld(t), r: rand.New(rand.NewPCG(uint64(seed), 0)), want: map[string][]string{}}
			r.run()
		})
		if !ok {
			t.Fatalf("to repeat it: %s=%d %s=1", seedVariable, seed, roundsVariable)
		}
	}
}

type round struct {
	*world
	r      *rand.Rand
	client *protocol.Client
	want   map[string][]string // what the snapshots that are left hold
	ids    []string
	copies int
}

func (r *round) run() {
	r.t.Helper()
	r.client = r.connect()
	live := r.volume(0)
	for range 20 {
		archivetest.Mutate(r.t, live, r.r)
	}
	for n := range depth {
		for range r.r.IntN(15) {
			archivetest.Mutate(r.t, live, r.r)
		}
		r.take(fmt.Sprintf("s%02d", n), live)
		switch r.r.IntN(5) {
		case 0:
			r.drop()
		case 1:
			r.rollBack(live)
		case 2:
			assert.NilError(r.t, os.RemoveAll(filepath.Join(r.store, "volumes", "live"))) // what is known of it is forgotten
		}
	}
	for len(r.ids) > 0 {
		r.checkAll()
		r.drop()
	}
	usage, err := r.client.Usage(r.t.Context())
	assert.NilError(r.t, err)
	assert.Equal(r.t, len(usage.Snapshots)+len(usage.Sets), 0)
	left, err := os.ReadDir(filepath.Join(r.store, "snapshots"))
	assert.NilError(r.t, err)
	assert.Equal(r.t, len(left), 0, "nothing is left of snapshots that are gone")
}

// take makes a snapshot, with changes between its passes.
func (r *round) take(id, live string) {
	r.t.Helper()
	ctx := r.t.Context()
	mounts := []protocol.Mount{{Number: 0, Key: "live"}}
	assert.NilError(r.t, r.client.Begin(ctx, protocol.BeginRequest{Snapshot: id, Mounts: mounts}, nil))
	mode := protocol.Idle
	if r.r.IntN(3) > 0 {
		mode = protocol.Frozen
		_, err := r.client.Pass(ctx, protocol.Live, nil)
		assert.NilError(r.t, err)
		for range r.r.IntN(4) {
			archivetest.Mutate(r.t, live, r.r)
		}
	}
	_, err := r.client.Pass(ctx, mode, nil)
	assert.NilError(r.t, err)
	r.want[id] = archivetest.Describe(r.t, live)
	_, err = r.client.Publish(ctx, protocol.PublishRequest{}, nil)
	assert.NilError(r.t, err)
	r.ids = append(r.ids, id)
}

// drop removes a random snapshot.
func (r *round) drop() {
	r.t.Helper()
	i := r.r.IntN(len(r.ids))
	id := r.ids[i]
	r.ids = append(r.ids[:i], r.ids[i+1:]...)
	delete(r.want, id)
	result, err := r.client.Remove(r.t.Context(), protocol.RemoveRequest{Snapshots: []protocol.Claim{{Snapshot: id}}}, nil)
	assert.NilError(r.t, err)
	assert.DeepEqual(r.t, result.Removed, []string{id})
}

// rollBack restores a random snapshot in place; a dry run has said before what that changes.
func (r *round) rollBack(live string) {
	r.t.Helper()
	if len(r.ids) == 0 {
		return
	}
	id := r.ids[r.r.IntN(len(r.ids))]
	request := protocol.RestoreRequest{Snapshot: id, Mount: protocol.Mount{Number: 0, Key: "live"}, DryRun: true}
	restorer := r.connect() // it changes nothing else after that
	planned, err := restorer.Restore(r.t.Context(), request, nil)
	assert.NilError(r.t, err)
	request.DryRun = false
	done, err := restorer.Restore(r.t.Context(), request, nil)
	assert.NilError(r.t, err)
	assert.DeepEqual(r.t, planned, done)
	archivetest.Equal(r.t, archivetest.Describe(r.t, live), r.want[id])
}

// checkAll verifies the store and restores every snapshot that is left in it: in place, one
// over the other, and now and then into a new volume.
func (r *round) checkAll() {
	r.t.Helper()
	found, err := r.client.Verify(r.t.Context(), protocol.VerifyRequest{}, nil)
	assert.NilError(r.t, err)
	assert.Equal(r.t, len(found.Damages), 0, "%v", found.Damages)
	restorer := r.connect()
	for _, i := range r.r.Perm(len(r.ids)) {
		number := inPlace
		if r.r.IntN(8) == 0 {
			r.copies++
			number = inPlace + r.copies
		}
		target := r.volume(number)
		mount := protocol.Mount{Number: number, Key: fmt.Sprintf("copy%d", number)}
		_, err = restorer.Restore(r.t.Context(), protocol.RestoreRequest{Snapshot: r.ids[i], Mount: mount}, nil)
		assert.NilError(r.t, err)
		archivetest.Equal(r.t, archivetest.Describe(r.t, target), r.want[r.ids[i]])
		if number != inPlace {
			assert.NilError(r.t, os.RemoveAll(target))
		}
	}
}
