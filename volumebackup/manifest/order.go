package manifest

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
)

// order checks that entries come in the order of the format.
type order struct {
	last    string
	started bool
	parents []int // how long the paths are of the directories above and including the last entry, which begins with them
	seed    maphash.Seed
	shared  map[uint64]struct{} // the paths of files with several names, hashed with a key that nobody knows
}

// file is the hash by which shared knows a path.
func (o *order) file(path string) uint64 { return maphash.String(o.seed, path) }

// check takes the next entry. If it refuses the entry, nothing changes.
func (o *order) check(e *Entry) error {
	if !o.started {
		if e.Path != "" || e.Kind != Directory {
			return errors.New("the first entry is not the root")
		}
		o.started = true
		o.parents = append(o.parents, 0)
		o.seed, o.shared = maphash.MakeSeed(), map[uint64]struct{}{}
		return nil
	}
	if err := checkPath(e.Path); err != nil {
		return err
	}
	if Compare(o.last, e.Path) >= 0 {
		return fmt.Errorf("%q comes after %q", e.Path, o.last)
	}
	parent := Parent(e.Path)
	above := len(o.parents)
	for above > 0 && o.parents[above-1] > len(parent) {
		above--
	}
	if above == 0 || o.parents[above-1] != len(parent) || !strings.HasPrefix(o.last, parent) {
		return fmt.Errorf("%q is in no directory", e.Path)
	}
	if e.Kind == HardLink {
		if _, ok := o.shared[o.file(e.Target)]; !ok {
			return fmt.Errorf("%q is a further name of %q, which is no file before it", e.Path, e.Target)
		}
	}
	if e.Shared && len(o.shared) >= maxShared {
		return fmt.Errorf("there are more than %d files with several names: %w", maxShared, ErrUnfit)
	}
	o.last, o.parents = e.Path, o.parents[:above]
	if e.Kind == Directory {
		o.parents = append(o.parents, len(e.Path))
	}
	if e.Shared {
		o.shared[o.file(e.Path)] = struct{}{}
	}
	return nil
}
