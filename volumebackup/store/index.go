//go:build linux

package store

import (
	"maps"
	"sync"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Index finds content that is stored already. It keeps half of each sum: the chance that two
// of 2^64 pieces share it is negligible, and a wrong match would show as damage.
type Index struct {
	mu sync.RWMutex
	at map[indexKey]manifest.Location
}

type indexKey [16]byte

// NewIndex makes an empty index.
func NewIndex() *Index { return &Index{at: map[indexKey]manifest.Location{}} }

// Find says where content is stored.
func (x *Index) Find(sum *manifest.Sum) (manifest.Location, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, ok := x.at[indexKey(sum[:16])]
	return at, ok
}

// Add records where content is stored.
func (x *Index) Add(sum *manifest.Sum, at manifest.Location) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at[indexKey(sum[:16])] = at
}

// Remove forgets that content is stored at a place, unless it is known to be at another one by now.
func (x *Index) Remove(sum *manifest.Sum, at manifest.Location) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if key := indexKey(sum[:16]); x.at[key] == at {
		delete(x.at, key)
	}
}

// Load adds all pieces of a manifest, or none if it is damaged.
func (x *Index) Load(r *Manifest) error {
	loaded := map[indexKey]manifest.Location{}
	err := r.Each(func(e *manifest.Entry) error {
		for i := range e.Pieces {
			if p := &e.Pieces[i]; p.At.Pack != 0 {
				loaded[indexKey(p.Sum[:16])] = p.At
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.at) == 0 {
		x.at = loaded
		return nil
	}
	maps.Copy(x.at, loaded)
	return nil
}
