//go:build linux

package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Usage is what a snapshot holds in the store.
type Usage struct {
	Snapshot string
	Own      int64 // what no other snapshot needs
	Shared   int64
}

// HolderSet is a set of snapshots, and the bytes that just these hold. It consists of another set
// and one more snapshot.
type HolderSet struct {
	Rest     int // index of the other set, which comes before; -1: there is none
	Snapshot int // index of the snapshot
	Bytes    int64
}

// Holdings is what all snapshots hold in the store, and what all of it takes on disk.
type Holdings struct {
	Snapshots []Usage
	Sets      []HolderSet
	Total     int64 // bytes of all files and directories of the store, as du counts them
	Holes     int64 // bytes that its files are longer than that: they were given back
}

// maxHolderSets bounds the sets. Beyond that, those who share something with others are not told
// apart any more: then some bytes seem to be free earlier than they are.
const maxHolderSets = 100_000

// Usage finds out what each snapshot holds, alone and together with others.
func (s *Store) Usage(ctx context.Context) (Holdings, error) {
	ids, err := s.Snapshots()
	if err != nil {
		return Holdings{}, err
	}
	h := newHolders(maxHolderSets)
	holders := map[usedPiece]int{} // which set holds a piece
	for user, id := range ids {
		own, err := s.ownBytes(id)
		if err != nil {
			return Holdings{}, err
		}
		h.hold(user, own)
		err = s.eachPiece(ctx, id, func(p usedPiece) {
			before, known := holders[p]
			if !known {
				before = noSet
			}
			holders[p] = h.add(before, user, p.stored)
		})
		if err != nil {
			return Holdings{}, err
		}
	}
	total, holes, err := s.onDisk()
	return Holdings{Snapshots: h.usage(ids), Sets: h.sets, Total: total, Holes: holes}, err
}

// onDisk adds up all that is in the store, files with several names once. What disappears meanwhile
// takes nothing.
func (s *Store) onDisk() (total, holes int64, err error) {
	linked := map[uint64]bool{} // by inode
	err = filepath.WalkDir(s.path(), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		var st unix.Stat_t
		switch err := unix.Lstat(path, &st); {
		case errors.Is(err, unix.ENOENT):
			return nil
		case err != nil:
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		if st.Nlink > 1 && entry.Type().IsRegular() {
			if linked[st.Ino] {
				return nil
			}
			linked[st.Ino] = true
		}
		total += st.Blocks * 512
		if entry.Type().IsRegular() {
			holes += max(0, st.Size-st.Blocks*512)
		}
		return nil
	})
	return total, holes, err
}

// noSet means the empty set.
const noSet = -1

// holders finds the set of snapshots that hold a piece. Snapshots are added in order, so the last
// one of a set is its own.
type holders struct {
	sets  []HolderSet
	known map[[2]int]int // a set by its other set and its snapshot
	most  int
}

func newHolders(most int) *holders { return &holders{known: map[[2]int]int{}, most: most} }

// hold gives bytes to one snapshot alone.
func (h *holders) hold(user int, bytes int64) { h.sets[h.find(noSet, user)].Bytes += bytes }

// add adds a snapshot to those that hold a piece, and returns their set.
func (h *holders) add(before, user int, bytes int64) int {
	if before == noSet {
		set := h.find(noSet, user)
		h.sets[set].Bytes += bytes
		return set
	}
	if h.sets[before].Snapshot == user { // it has the piece twice
		return before
	}
	set := h.find(before, user)
	h.sets[before].Bytes -= bytes
	h.sets[set].Bytes += bytes
	return set
}

// find returns the set of another one and one snapshot. When there are too many sets it returns
// the other one.
func (h *holders) find(rest, user int) int {
	at := [2]int{rest, user}
	if set, ok := h.known[at]; ok {
		return set
	}
	if len(h.sets) >= h.most && rest != noSet {
		return rest
	}
	h.sets = append(h.sets, HolderSet{Rest: rest, Snapshot: user})
	h.known[at] = len(h.sets) - 1
	return len(h.sets) - 1
}

// usage sums up what each snapshot holds.
func (h *holders) usage(ids []string) []Usage {
	all := make([]Usage, len(ids))
	for i, id := range ids {
		all[i].Snapshot = id
	}
	for _, set := range h.sets {
		if set.Rest == noSet {
			all[set.Snapshot].Own += set.Bytes
			continue
		}
		for one := set; set.Bytes > 0; one = h.sets[one.Rest] {
			all[one.Snapshot].Shared += set.Bytes
			if one.Rest == noSet {
				break
			}
		}
	}
	return all
}

// ownBytes is what the manifests and the attachments of a snapshot take on disk.
func (s *Store) ownBytes(id string) (total int64, err error) {
	for _, pattern := range []string{"*.man", filepath.Join(attachmentsDir, "*")} {
		files, err := filepath.Glob(s.path("snapshots", id, pattern))
		if err != nil {
			return 0, err
		}
		for _, f := range files {
			n, err := allocated(f)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}

// usedPiece is a piece in a pack.
type usedPiece struct {
	pack   manifest.PackID
	offset int64
	stored int64
}

func (s *Store) eachPiece(ctx context.Context, id string, visit func(p usedPiece)) error {
	archives, err := s.Archives(id)
	if err != nil {
		return err
	}
	for _, n := range archives {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := s.archivePieces(id, n, visit); err != nil {
			return err
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
