//go:build linux

package archive

import (
	"path"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/paths"
)

// Choice says which entries of a volume a restore is about. All others stay as they are.
type Choice struct {
	Filter *paths.Filter
	At     []string // where the container has the volume; it may be in several places
}

// has tells whether an entry is restored.
func (c *Choice) has(entry string) bool {
	return c == nil || slices.ContainsFunc(c.At, func(at string) bool { return c.Filter.Has(path.Join(at, entry)) })
}

// headOfRest opens what is known of the entries that a restore leaves alone; it need not be read again afterwards.
func (r *restore) headOfRest() (cursor, error) {
	if r.Chosen == nil {
		return newCursor(nil), nil
	}
	head, err := r.store.OpenHead(r.Mount.Key)
	if isDamage(err) {
		head, err = nil, nil
	}
	return newCursor(head), err
}
