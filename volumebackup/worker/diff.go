//go:build linux

package worker

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
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
	batch := changeBatch{e: e}
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
	e    *exchange
	list []protocol.FileChange
	size int
}

func (b *changeBatch) add(c changes.Change) error {
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

// maxImage bounds the manifest of a root filesystem, which the worker keeps in memory.
const maxImage = 256 << 20

// learn takes the manifest of a root filesystem.
func (s *session) learn(ctx context.Context, r protocol.LearnRequest, e *exchange) (protocol.None, error) {
	content, err := io.ReadAll(io.LimitReader(e.bytes, maxImage+1))
	if err != nil {
		return protocol.None{}, fmt.Errorf("read what the root filesystem holds: %w", err)
	}
	if len(content) > maxImage {
		return protocol.None{}, fmt.Errorf("the list of the files of the root filesystem is longer than %d bytes: %w", maxImage, errdefs.ErrInvalidArgument)
	}
	m, err := s.store.ReadManifest(r.Image, content)
	if err != nil {
		return protocol.None{}, err
	}
	err = m.Each(func(*manifest.Entry) error { return context.Cause(ctx) })
	m.Close()
	if err != nil {
		return protocol.None{}, err
	}
	if !r.Keep {
		s.images[r.Image] = content
		return protocol.None{}, nil
	}
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.None{}, err
	}
	defer unlock()
	return protocol.None{}, s.store.KeepImage(r.Image, content)
}

// known tells which root filesystems need not be learnt. One that is damaged has to.
func (s *session) known(ctx context.Context, r protocol.KnownRequest, _ *exchange) (protocol.KnownResult, error) {
	return protocol.KnownResult{Images: slices.DeleteFunc(r.Images, func(key string) bool {
		m, err := s.openImage(key)
		if err != nil {
			return true
		}
		err = m.Each(func(*manifest.Entry) error { return context.Cause(ctx) })
		m.Close()
		return err != nil
	})}, context.Cause(ctx)
}

func (s *session) openImage(key string) (*store.Manifest, error) {
	if content, learnt := s.images[key]; learnt {
		return s.store.ReadManifest(key, content)
	}
	return s.store.OpenImage(key)
}
