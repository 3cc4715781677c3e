//go:build linux

package store

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Usage is what a snapshot holds in the store.
type Usage struct {
	Snapshot string
	Own      int64 // what no other snapshot needs
	Shared   int64
}

// Usage finds out what each snapshot holds, and what all of them take on disk.
func (s *Store) Usage(ctx context.Context) (snapshots []Usage, total int64, err error) {
	ids, err := s.Snapshots()
	if err != nil {
		return nil, 0, err
	}
	users := map[usedPiece]int{} // one more than the place of the only user; -1 for several
	err = s.eachPiece(ctx, ids, func(user int, p usedPiece) {
		if before := users[p]; before == 0 {
			users[p] = user + 1
		} else if before != user+1 {
			users[p] = -1
		}
	})
	if err != nil {
		return nil, 0, err
	}
	snapshots = make([]Usage, len(ids))
	for i, id := range ids {
		snapshots[i].Snapshot = id
	}
	seen := map[usedPiece]int{} // the last user that counted a shared piece, plus one
	err = s.eachPiece(ctx, ids, func(user int, p usedPiece) {
		if seen[p] == user+1 {
			return
		}
		seen[p] = user + 1
		if users[p] == -1 {
			snapshots[user].Shared += p.stored
		} else {
			snapshots[user].Own += p.stored
		}
	})
	if err != nil {
		return nil, 0, err
	}
	total, err = s.packBytes()
	return snapshots, total, err
}

// usedPiece is a piece in a pack.
type usedPiece struct {
	pack   manifest.PackID
	offset int64
	stored int64
}

func (s *Store) eachPiece(ctx context.Context, ids []string, visit func(user int, p usedPiece)) error {
	for user, id := range ids {
		archives, err := s.Archives(id)
		if err != nil {
			return err
		}
		for _, n := range archives {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := s.archivePieces(id, n, func(p usedPiece) { visit(user, p) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) archivePieces(id string, n int, visit func(usedPiece)) error {
	r, err := s.OpenManifest(id, n)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.eachLocation(func(at manifest.Location) {
		stored := int64(at.Stored) + padding(int64(at.Stored)) + tarBlock
		visit(usedPiece{pack: at.Pack, offset: at.Offset, stored: stored})
	})
}
