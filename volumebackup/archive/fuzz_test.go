//go:build linux

package archive

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// hostile reads entries from text, one a line: kind, path and target, separated by blanks.
func hostile(text string) []*manifest.Entry {
	var entries []*manifest.Entry
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(fields) < 3 || len(fields[0]) != 1 {
			continue
		}
		e := &manifest.Entry{Kind: manifest.Kind(fields[0][0]), Path: fields[1], Target: fields[2]}
		e.Shared = e.Kind != manifest.Directory && e.Kind != manifest.HardLink && len(fields) > 3
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *manifest.Entry) int { return manifest.Compare(a.Path, b.Path) })
	return entries
}

// FuzzRestore restores hostile archives over each other into a volume: whatever
// they hold, nothing outside of the volume changes.
func FuzzRestore(f *testing.F) {
	f.Add("l a ../outside", "d a x\nf a/file x")
	f.Add("l a /\nl b a", "f a x\nd b x\nf b/c x")
	f.Add("d .. x\nf ../escape x", "f /etc/escape x\nf a/../../escape x")
	f.Add("f a x shared\nh b a\nl c a", "h a b\nh b a\nh c ../outside/canary\nd a x\nf a/b x")
	f.Add("l d ../outside\nl e d/canary shared\nh f e", "f d x\nf e x\nf f x")
	f.Add("d d x\nl d/l ..\np d/p x", "d d x\nd d/l x\nf d/l/outside x\nd d/p x\nf d/p/q x")
	f.Fuzz(func(t *testing.T, first, second string) {
		w := newWorld(t)
		around := filepath.Dir(w.volume)
		assert.NilError(t, os.Mkdir(filepath.Join(around, "outside"), 0o755))
		assert.NilError(t, os.WriteFile(filepath.Join(around, "outside", "canary"), []byte("alive"), 0o600))
		want := outside(t, around)
		for i, text := range []string{first, second, first} {
			id := "s" + string(rune('0'+i))
			d, err := w.store.Begin(t.Context(), id)
			assert.NilError(t, err)
			_, err = d.WriteManifest(0, func(m *manifest.Writer) error {
				if err := m.Append(&manifest.Entry{Kind: manifest.Directory, Attributes: manifest.Attributes{Mode: 0o755}}); err != nil {
					return err
				}
				for _, e := range hostile(text) {
					_ = m.Append(e) // what it refuses a reader refuses, too
				}
				return nil
			})
			assert.NilError(t, err)
			_, err = d.Publish(nil)
			assert.NilError(t, err)
			_, _ = w.tryRestore(id, "vol", w.volume) // whether that works is not the point
			assert.DeepEqual(t, outside(t, around), want)
		}
	})
}

// outside describes what is around the volume.
func outside(t *testing.T, around string) []string {
	t.Helper()
	var lines []string
	for _, line := range archivetest.Describe(t, around) {
		if !strings.HasPrefix(line, `"/volume`) {
			lines = append(lines, line)
		}
	}
	return lines
}
