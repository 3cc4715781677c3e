//go:build linux

package archive

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// checked tells what of the volume is too large for limits; nil: nothing.
func (w *world) checked(l Limits, excluded *labels.Exclusions) *TooLargeError {
	w.t.Helper()
	m := w.mount()
	m.Limits, m.Excluded = l, excluded
	err := CheckLimits(w.t.Context(), []Mount{m}, &Counter{})
	large, ok := errors.AsType[*TooLargeError](err)
	assert.Assert(w.t, ok || err == nil, "%v", err)
	return large
}

func TestWhatIsTooLargeIsToldWithItsLargestDirectories(t *testing.T) {
	w := newWorld(t)
	w.fill("a/", "a/deep/", "b/")
	w.write("a/deep/x", make([]byte, 300))
	w.write("a/y", make([]byte, 20))
	w.write("b/z", make([]byte, 50))
	assert.NilError(t, os.Link(w.path("b/z"), w.path("b/again"))) // one content
	for n := range 12 {
		w.fill(fmt.Sprintf("few%02d/", n))
	}
	assert.Assert(t, w.checked(Limits{Entries: 19, Bytes: 370}, nil) == nil)
	assert.Assert(t, w.checked(Limits{}, nil) == nil)

	large := w.checked(Limits{Bytes: 369}, nil)
	assert.Equal(t, large.Size, Size{Entries: 19, Bytes: 370})
	assert.Equal(t, len(large.Largest), 10)
	assert.DeepEqual(t, large.Largest[:3], []DirectorySize{
		{"a", Size{Entries: 3, Bytes: 320}}, {"a/deep", Size{Entries: 1, Bytes: 300}}, {"b", Size{Entries: 2, Bytes: 50}},
	})
	large = w.checked(Limits{Entries: 18}, nil)
	assert.DeepEqual(t, large.Largest[:3], []DirectorySize{
		{"a", Size{Entries: 3, Bytes: 320}}, {"b", Size{Entries: 2, Bytes: 50}}, {"a/deep", Size{Entries: 1, Bytes: 300}},
	})
}

func TestWhatIsExcludedIsNotCounted(t *testing.T) {
	w := newWorld(t)
	w.fill("a/", "a/x", "build/", "build/x", "build/keep")
	assert.Equal(t, w.checked(Limits{Entries: 1}, nil).Size.Entries, int64(5))
	assert.Equal(t, w.checked(Limits{Entries: 1}, &labels.Exclusions{Patterns: []string{"build"}}).Size.Entries, int64(2))
	assert.Equal(t, w.checked(Limits{Entries: 1}, &labels.Exclusions{Patterns: []string{"build"}, Included: []string{"keep"}}).Size.Entries, int64(3))
	w.write(".gitignore", []byte("build/\n"))
	assert.Equal(t, w.checked(Limits{Entries: 1}, &labels.Exclusions{Gitignore: true}).Size.Entries, int64(3))
}

// A file may be 10 GB long and hold nothing.
func TestHolesAreNotCounted(t *testing.T) {
	w := newWorld(t)
	w.write("sparse", nil)
	assert.NilError(t, os.Truncate(w.path("sparse"), 10<<30))
	assert.Assert(t, w.checked(Limits{Bytes: 1 << 20}, nil) == nil)
}

// A bind mount may be of a file, which is no directory to archive.
func TestAFileCannotBeArchivedAsAVolume(t *testing.T) {
	w := newWorld(t)
	w.write("file", []byte("x"))
	m := w.mount()
	m.Key, m.Path = "/srv/file", w.path("file")
	_, err := Begin(t.Context(), w.store, "20261120-101112-0000aa", []Mount{m})
	assert.ErrorContains(t, err, "bind mount /srv/file: it is not a directory")
}
