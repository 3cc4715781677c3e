//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// rotRounds is how often a store rots in the test.
const rotRounds = 20

// TestStoreThatRots damages packs at random, and goes through what a restore in place does: the volume never
// holds wrong bytes, and there is always a way back to what it held.
func TestStoreThatRots(t *testing.T) {
	first := archivetest.Number(t, seedVariable, 1)
	seen := map[string]int{}
	for seed := first; seed < first+2; seed++ {
		w := &rotting{world: newWorld(t), r: rand.New(rand.NewPCG(uint64(seed), 7)), want: map[string][]string{}, seen: seen}
		w.live = w.volume(0)
		for range 30 {
			archivetest.Mutate(t, w.live, w.r)
		}
		for n := range rotRounds {
			w.round(n)
		}
	}
	t.Log(seen)
	for _, event := range []string{"repaired", "restored", "damaged"} {
		assert.Assert(t, seen[event] > 0, "no round had anything that was %s: %v", event, seen)
	}
}

type rotting struct {
	*world
	r    *rand.Rand
	live string
	want map[string][]string // what the snapshots hold
	ids  []string
	seen map[string]int // what happened in the rounds
}

// round takes a safety snapshot, has the store rot, and restores an earlier snapshot, or as much of it as time
// allows; then it goes back. Every round is other workers' affair.
func (w *rotting) round(n int) {
	w.t.Helper()
	for range w.r.IntN(10) {
		archivetest.Mutate(w.t, w.live, w.r)
	}
	safety := fmt.Sprintf("s%02d", n)
	w.take(safety)
	w.rot()
	target := w.ids[w.r.IntN(len(w.ids))]
	c := w.connect()
	mount := protocol.Mount{Number: 0, Key: "live"}
	secured, err := c.Secure(w.t.Context(), protocol.SecureRequest{
		Now: protocol.ArchiveRef{Snapshot: safety}, Next: protocol.ArchiveRef{Snapshot: target}, Mount: mount,
	}, nil)
	assert.NilError(w.t, err)
	if secured.Repaired > 0 {
		w.seen["repaired"]++
	}
	w.apply(target, safety, mount)
	_, err = w.connect().Restore(w.t.Context(), protocol.RestoreRequest{Snapshot: safety, Mount: mount}, nil)
	assert.NilError(w.t, err, "the way back from %s to %s", target, safety)
	archivetest.Equal(w.t, archivetest.Describe(w.t, w.live), w.want[safety])
}

// take makes a snapshot of the volume, which must succeed whatever is damaged. A copy of it holds the right
// bytes, or is refused.
func (w *rotting) take(id string) {
	w.t.Helper()
	w.want[id] = archivetest.Describe(w.t, w.live)
	w.snapshot(w.connect(), id, protocol.Mount{Number: 0, Key: "live"})
	w.ids = append(w.ids, id)
	copied := w.volume(1)
	_, err := w.connect().Restore(w.t.Context(), protocol.RestoreRequest{Snapshot: id, Mount: protocol.Mount{Number: 1, Key: "copy"}}, nil)
	if err == nil {
		archivetest.Equal(w.t, archivetest.Describe(w.t, copied), w.want[id])
	} else {
		assert.ErrorIs(w.t, err, protocol.Damaged)
	}
	assert.NilError(w.t, os.RemoveAll(copied))
}

// apply restores a snapshot in place. Now and then the client goes away in the middle.
func (w *rotting) apply(target, safety string, mount protocol.Mount) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	leaves := w.r.IntN(2) == 0
	c := w.connectWith(Options{ProgressInterval: 1})
	_, err := c.Restore(ctx, protocol.RestoreRequest{Snapshot: target, Mount: mount}, func(e protocol.Event) {
		if leaves && e.Progress != nil && e.Progress.Total > 0 { // it writes by now
			cancel()
		}
	})
	switch {
	case err == nil:
		archivetest.Equal(w.t, archivetest.Describe(w.t, w.live), w.want[target])
		w.seen["restored"]++
	case errors.Is(err, protocol.Damaged):
		archivetest.Equal(w.t, archivetest.Describe(w.t, w.live), w.want[safety])
		w.seen["damaged"]++
	default:
		assert.ErrorIs(w.t, err, context.Canceled)
		w.seen["stopped"]++
	}
}

// rot damages some packs.
func (w *rotting) rot() {
	w.t.Helper()
	packs, err := filepath.Glob(filepath.Join(w.store, "snapshots", "*", "*.tar"))
	assert.NilError(w.t, err)
	for range 1 + w.r.IntN(3) {
		pack, other := packs[w.r.IntN(len(packs))], packs[w.r.IntN(len(packs))]
		content, err := os.ReadFile(pack)
		if err != nil || len(content) == 0 {
			continue // it was damaged before
		}
		switch w.r.IntN(8) {
		case 0:
			content = content[:w.r.IntN(len(content))]
		case 1:
			content, err = os.ReadFile(other)
		case 2:
			assert.NilError(w.t, os.Remove(pack))
			continue
		default:
			for range 1 + w.r.IntN(20) {
				content[w.r.IntN(len(content))] ^= 1 << w.r.IntN(8)
			}
		}
		if err == nil {
			assert.NilError(w.t, os.WriteFile(pack, content, 0o600))
		}
	}
}
