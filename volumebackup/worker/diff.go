//go:build linux

package worker

import (
	"context"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// diff sends in what two trees differ.
func (s *session) diff(ctx context.Context, r protocol.DiffRequest, e *exchange) (protocol.None, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.None{}, err
	}
	defer unlock()
	before, err := s.tree(r.Old)
	if err != nil {
		return protocol.None{}, err
	}
	after, err := s.tree(r.New)
	if err != nil {
		if before.Manifest != nil {
			before.Manifest.Close()
		}
		return protocol.None{}, err
	}
	batch := changeBatch{e: e, hidden: r.Hidden}
	err = archive.Diff(ctx, s.store, before, after, e, &e.counter, batch.add)
	if err == nil {
		batch.send()
	}
	return protocol.None{}, err
}

// tree opens what a tree is read from.
func (s *session) tree(t protocol.Tree) (archive.Tree, error) {
	switch {
	case t.Archive != nil:
		m, err := s.openArchive(t.Archive.Snapshot, t.Archive.Archive, t.Archive.Root)
		return archive.Tree{Manifest: m}, err
	case t.Mount != nil:
		m := s.mount(*t.Mount)
		return archive.Tree{Volume: &m, Afresh: t.Afresh}, nil
	case t.Image != "":
		m, err := s.openImage(t.Image)
		return archive.Tree{Manifest: m}, err
	}
	return archive.Tree{}, nil
}

// openArchive opens the manifest of an archive, and fails if it has another root than the one that is known.
func (s *session) openArchive(snapshot string, number int, text string) (*store.Manifest, error) {
	root, err := parseRoot(text)
	if err != nil {
		return nil, err
	}
	m, err := s.store.OpenManifest(snapshot, number)
	if err != nil {
		return nil, err
	}
	if root != nil && *root != m.Summary().Root {
		m.Close()
		return nil, &protocol.Error{Class: protocol.Damaged, Message: "the store holds another archive of this volume than the one that was taken for the snapshot"}
	}
	return m, nil
}

// changeBatch collects changes until there are enough for an event.
type changeBatch struct {
	e      *exchange
	hidden []protocol.Path // places that nothing is said of
	list   []protocol.FileChange
	size   int
}

func (b *changeBatch) add(c changes.Change) error {
	for _, place := range b.hidden {
		if c.Path == string(place) || strings.HasPrefix(c.Path, string(place)+"/") {
			return nil
		}
	}
	b.list = append(b.list, protocol.FileChange{Path: protocol.Path(c.Path), Type: c.Type, SizeDelta: c.SizeDelta})
	if b.size += len(c.Path) + 64; b.size >= listBatch {
		b.send()
	}
	return nil
}

func (b *changeBatch) send() {
	if len(b.list) > 0 {
		b.e.emit(protocol.Event{Type: protocol.TypeChanges, Changes: b.list})
	}
	b.list, b.size = nil, 0
}
