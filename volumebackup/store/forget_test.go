//go:build linux

package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// What is known of a volume that the engine does not have is forgotten, unless it is new, or of a bind mount.
func TestVolumesThatAreGoneAreForgotten(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	volumes := []string{"there", "gone", "/srv/bind", strings.Repeat("long", 100)}
	for _, volume := range volumes {
		assert.NilError(t, s.WriteHead(volume, func(w *manifest.Writer) error { return w.Append(&manifest.Entry{Kind: manifest.Directory}) }))
		assert.NilError(t, s.SetUnchecked(volume, 3))
	}
	known := func() []string {
		return slices.DeleteFunc(slices.Clone(volumes), func(volume string) bool {
			_, err := os.Stat(s.headPath(volume))
			return err != nil
		})
	}
	forget := func(r Removal) {
		_, err := s.Remove(t.Context(), r)
		assert.NilError(t, err)
	}
	later := time.Now().Add(2 * forgetAge)
	forget(Removal{Now: later})                                  // nobody has asked the engine
	forget(Removal{Now: time.Now(), Volumes: []string{"there"}}) // it may have been made since
	assert.DeepEqual(t, known(), volumes)
	forget(Removal{Now: later, Volumes: []string{"there", "unknown"}})
	assert.DeepEqual(t, known(), []string{"there", "/srv/bind", strings.Repeat("long", 100)})
	_, err = os.Stat(filepath.Dir(s.headPath("gone")))
	assert.ErrorIs(t, err, os.ErrNotExist)
	forget(Removal{Now: later, Volumes: []string{}})
	assert.DeepEqual(t, known(), []string{"/srv/bind", strings.Repeat("long", 100)})
}
