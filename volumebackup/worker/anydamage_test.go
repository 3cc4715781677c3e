//go:build linux

package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

const (
	// damagesVariable sets how many stores are damaged in the test. seedVariable says which is the first.
	damagesVariable = "DOCKER_SNAPSHOT_TEST_DAMAGES"
	defaultDamages  = 40

	// damagesPerStore is how many copies of one store are damaged, each in its own way.
	damagesPerStore = 20
)

// TestAnyDamage changes something in a store at random: a flipped bit, a file cut short, exchanged, gone, or of an
// earlier time. Nothing panics, no restore gives anything but what was captured, and whoever is refused is told which
// snapshot and which file it is.
func TestAnyDamage(t *testing.T) {
	rounds, first := archivetest.Number(t, damagesVariable, defaultDamages), archivetest.Number(t, seedVariable, 1)
	seen := map[string]int{}
	for n := 0; n < rounds; n += damagesPerStore {
		seed := first + n/damagesPerStore
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			b := newBreakable(t, seed, seen)
			for i := range min(damagesPerStore, rounds-n) {
				b.round(i)
			}
		})
		if !ok {
			t.Fatalf("to repeat it: %s=%d %s=%d", seedVariable, seed, damagesVariable, damagesPerStore)
		}
	}
	t.Log(seen)
	for _, event := range []string{"found", "harmless", "exact", "refused"} {
		assert.Assert(t, seen[event] > 0, "nothing was %s: %v", event, seen)
	}
}

// breakable is a store with some snapshots of two volumes. Copies of it are damaged.
type breakable struct {
	*world
	r        *rand.Rand
	seen     map[string]int
	mounts   []protocol.Mount
	taken    []*takenSnapshot
	versions map[string][][]byte // what each file of the store held at earlier times
	whole    string              // the store that is never damaged

	// Of the present round:
	did      string          // what was done to the store
	said     map[string]bool // snapshots that a verification finds damaged
	unusable bool            // the store cannot even be opened
	undo     func()          // takes back what was not done to the store; nil: nothing
}

// takenSnapshot is what a snapshot's labels say, and what its volumes held.
type takenSnapshot struct {
	id       string
	want     [][]string
	roots    map[int]string
	attached protocol.Attached
}

const attachmentName = "notes.txt"

func newBreakable(t *testing.T, seed int, seen map[string]int) *breakable {
	t.Helper()
	b := &breakable{
		world: newWorld(t), r: rand.New(rand.NewPCG(uint64(seed), 11)), seen: seen, versions: map[string][][]byte{},
		mounts: []protocol.Mount{{Number: 0, Key: "data"}, {Number: 1, Key: "more"}},
	}
	b.whole = b.store
	for _, m := range b.mounts {
		for range 12 {
			archivetest.Mutate(t, b.volume(m.Number), b.r)
		}
	}
	c := b.connect()
	for n := range 4 {
		b.keep(c, fmt.Sprintf("s%d", n))
		for _, m := range b.mounts {
			for range 1 + b.r.IntN(5) {
				archivetest.Mutate(t, b.volume(m.Number), b.r)
			}
		}
	}
	gone := b.taken[1] // packs with parts that were freed
	_, err := c.Remove(t.Context(), protocol.RemoveRequest{Snapshots: []protocol.Claim{{Snapshot: gone.id}}}, nil)
	assert.NilError(t, err)
	b.taken = slices.Delete(b.taken, 1, 2)
	b.keep(c, "s4")
	return b
}

func notesOf(id string) string { return "notes of " + id }

// keep makes a snapshot that is going to be restored.
func (b *breakable) keep(c *protocol.Client, id string) {
	b.t.Helper()
	taken, err := b.take(c, id)
	assert.NilError(b.t, err)
	b.taken = append(b.taken, taken)
	b.remember()
}

// take makes a snapshot of both volumes, with an attachment.
func (b *breakable) take(c *protocol.Client, id string) (*takenSnapshot, error) {
	ctx := b.t.Context()
	if err := c.Begin(ctx, protocol.BeginRequest{Snapshot: id, Mounts: b.mounts}, nil); err != nil {
		return nil, err
	}
	taken := &takenSnapshot{id: id, roots: map[int]string{}}
	var err error
	if taken.attached, err = c.Attach(ctx, attachmentName, strings.NewReader(notesOf(id)), nil); err != nil {
		return nil, err
	}
	pass, err := c.Pass(ctx, protocol.Idle, nil)
	if err != nil {
		return nil, err
	}
	for _, a := range pass.Archives {
		taken.roots[a.Number] = a.Root
		taken.want = append(taken.want, archivetest.Describe(b.t, b.volume(a.Number)))
	}
	_, err = c.Publish(ctx, protocol.PublishRequest{Engine: "engine", Container: strings.Repeat("c", 64)}, nil)
	return taken, err
}

// remember keeps what the files of the store hold.
func (b *breakable) remember() {
	b.t.Helper()
	for _, name := range b.files() {
		content, err := os.ReadFile(filepath.Join(b.store, name))
		assert.NilError(b.t, err)
		if all := b.versions[name]; len(all) == 0 || !bytes.Equal(all[len(all)-1], content) {
			b.versions[name] = append(all, content)
		}
	}
}

// files lists the files of the store.
func (b *breakable) files() []string {
	b.t.Helper()
	var names []string
	assert.NilError(b.t, filepath.WalkDir(b.store, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(b.store, path)
		names = append(names, name)
		return err
	}))
	return names
}

// round damages a copy of the store and goes through all that a store is for.
func (b *breakable) round(n int) {
	b.t.Helper()
	b.store = b.t.TempDir()
	b.t.Cleanup(func() { _ = os.RemoveAll(b.store) })
	assert.NilError(b.t, os.CopyFS(b.store, os.DirFS(b.whole)))
	b.did = b.damage()
	b.verify()
	refused := b.restoreCopy()
	refused = b.readAttachment() || refused
	refused = b.restoreInPlace() || refused
	refused = b.create(fmt.Sprintf("new%d", n)) || refused
	if len(b.said) > 0 || b.unusable || refused {
		b.seen["found"]++
	} else {
		b.seen["harmless"]++
	}
	assert.NilError(b.t, os.RemoveAll(b.store))
	b.store = b.whole
	if b.undo != nil {
		b.undo()
		b.undo = nil
	}
	b.heal()
}

// heal makes the volumes what the newest snapshot holds again, as the heads of the undamaged store say.
func (b *breakable) heal() {
	b.t.Helper()
	c := b.connect()
	newest := b.taken[len(b.taken)-1]
	for _, m := range b.mounts {
		_, err := c.Restore(b.t.Context(), protocol.RestoreRequest{Snapshot: newest.id, Archive: m.Number, Mount: m}, nil)
		assert.NilError(b.t, err)
		archivetest.Equal(b.t, archivetest.Describe(b.t, b.volume(m.Number)), newest.want[m.Number])
	}
}

// verify finds out which snapshots are said to be damaged.
func (b *breakable) verify() {
	b.t.Helper()
	request := protocol.VerifyRequest{}
	for _, s := range b.taken {
		request.Snapshots = append(request.Snapshots, protocol.VerifySnapshot{
			Snapshot: s.id, Roots: s.roots, Attachments: map[string]protocol.Attached{attachmentName: s.attached},
		})
	}
	b.said, b.unusable = map[string]bool{}, false
	found, err := b.connect().Verify(b.t.Context(), request, nil)
	if err != nil {
		b.unusable = true
		b.explained(err)
	}
	for _, d := range found.Damages {
		assert.Assert(b.t, d.Snapshot != "" && d.Pack != "" && d.Message != "", "%s: %+v", b.did, d)
		b.said[d.Snapshot] = true
	}
}

// restoreCopy restores a volume of a snapshot into an empty one, and tells whether that was refused.
func (b *breakable) restoreCopy() bool {
	b.t.Helper()
	s, from := b.taken[b.r.IntN(len(b.taken))], b.r.IntN(len(b.mounts))
	copied := b.volume(2)
	defer func() { assert.NilError(b.t, os.RemoveAll(copied)) }()
	_, err := b.connect().Restore(b.t.Context(), protocol.RestoreRequest{
		Snapshot: s.id, Archive: from, Root: s.roots[from], Mount: protocol.Mount{Number: 2, Key: "copy"},
	}, nil)
	if err != nil {
		b.refused(s, err)
		left, err := os.ReadDir(copied)
		assert.NilError(b.t, err)
		assert.Equal(b.t, len(left), 0, "%s: %v", b.did, left)
		return true
	}
	archivetest.Equal(b.t, archivetest.Describe(b.t, copied), s.want[from])
	b.seen["exact"]++
	return false
}

// readAttachment reads an attachment of a snapshot, and tells whether it is not what it was. The client compares that
// with the labels.
func (b *breakable) readAttachment() bool {
	b.t.Helper()
	s := b.taken[b.r.IntN(len(b.taken))]
	var got bytes.Buffer
	err := b.connect().Attachment(b.t.Context(), protocol.AttachmentRequest{Snapshot: s.id, Name: attachmentName}, &got, nil)
	if err == nil && got.String() == notesOf(s.id) {
		return false
	}
	if err != nil {
		b.explained(err)
	}
	assert.Assert(b.t, b.said[s.id] || b.unusable, "%s: a verification does not find it", b.did)
	return true
}

// restoreInPlace restores a volume of a snapshot over what is there, which stays as it is if that is refused.
func (b *breakable) restoreInPlace() bool {
	b.t.Helper()
	s, m := b.taken[b.r.IntN(len(b.taken))], b.mounts[b.r.IntN(len(b.mounts))]
	before := archivetest.Describe(b.t, b.volume(m.Number))
	_, err := b.connect().Restore(b.t.Context(), protocol.RestoreRequest{
		Snapshot: s.id, Archive: m.Number, Root: s.roots[m.Number], Mount: m,
	}, nil)
	now := archivetest.Describe(b.t, b.volume(m.Number))
	if err != nil {
		b.refused(s, err)
		archivetest.Equal(b.t, now, before)
		return true
	}
	archivetest.Equal(b.t, now, s.want[m.Number])
	b.seen["exact"]++
	return false
}

// create makes another snapshot with what is left of the store, and restores it. It tells whether either was refused.
// Only a store that cannot be opened takes none. What was damaged in a pack is not read, so that the snapshot may refer
// to it; its restore is refused then.
func (b *breakable) create(id string) (refused bool) {
	b.t.Helper()
	taken, err := b.take(b.connect(), id)
	if err != nil {
		assert.Assert(b.t, b.unusable, "%s: %v", b.did, err)
		b.explained(err)
		return true
	}
	for _, m := range b.mounts {
		copied := b.volume(3)
		_, err := b.connect().Restore(b.t.Context(), protocol.RestoreRequest{
			Snapshot: id, Archive: m.Number, Root: taken.roots[m.Number], Mount: protocol.Mount{Number: 3, Key: "copy"},
		}, nil)
		if err != nil {
			b.explained(err)
			assert.ErrorIs(b.t, err, protocol.Damaged)
			refused = true
		} else {
			archivetest.Equal(b.t, archivetest.Describe(b.t, copied), taken.want[m.Number])
		}
		assert.NilError(b.t, os.RemoveAll(copied))
	}
	return refused
}

// refused expects that a restore of a snapshot failed because of damage that a verification finds, too.
func (b *breakable) refused(s *takenSnapshot, err error) {
	b.t.Helper()
	b.explained(err)
	b.seen["refused"]++
	assert.Assert(b.t, b.said[s.id] || b.unusable, "%s: %v, which a verification does not find", b.did, err)
	if !b.unusable && !errors.Is(err, protocol.NotFound) { // the client says which volume is not in the store
		assert.ErrorIs(b.t, err, protocol.Damaged)
	}
}

// explained expects an error that names a file of the store, and not by its path here.
func (b *breakable) explained(err error) {
	b.t.Helper()
	said := err.Error()
	named := strings.Contains(said, "snapshots/") || strings.Contains(said, "format") || errors.Is(err, protocol.NotFound)
	assert.Assert(b.t, named && !strings.Contains(said, b.store), "%s: %v", b.did, err)
}
