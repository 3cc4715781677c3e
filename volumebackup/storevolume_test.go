package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// volumeEngine has one volume, or none.
type volumeEngine struct {
	Docker

	there *volume.Volume
	made  int
}

func (f *volumeEngine) VolumeInspect(context.Context, string) (volume.Volume, error) {
	if f.there == nil {
		return volume.Volume{}, cerrdefs.ErrNotFound
	}
	return *f.there, nil
}

func (f *volumeEngine) VolumeCreate(_ context.Context, o volume.CreateOptions) (volume.Volume, error) {
	f.made++
	f.there = &volume.Volume{Name: o.Name, Driver: "local", Labels: o.Labels}
	return *f.there, nil
}

func TestOnlyWhoCapturesMakesAStore(t *testing.T) {
	for _, r := range []rights{toLook, toTidy, toCompare, toReplace, toFill(true, true)} {
		f := &volumeEngine{}
		store := &storeVolume{docker: f, StoreRef: StoreRef{Name: "s"}}
		err := job{store: store, rights: r}.findStore(t.Context())
		var none *NoStoreError
		assert.Assert(t, errors.As(err, &none) && cerrdefs.IsNotFound(err), "%v", err)
		assert.Equal(t, f.made, 0)
	}
	f := &volumeEngine{}
	store := &storeVolume{docker: f, StoreRef: StoreRef{Name: "s"}}
	assert.NilError(t, job{store: store, rights: toCapture}.findStore(t.Context()))
	assert.Assert(t, f.there.Labels[labels.KeyStoreID] != "")
	assert.NilError(t, job{store: store, rights: toCapture}.findStore(t.Context()))
	assert.Equal(t, f.made, 1)
	assert.Assert(t, store.isPlain() && !store.isShared())
}

// Nobody who reads that has heard of workers.
func TestWithoutAStoreNoWorkerIsSpokenOf(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("make: %w", &NoStoreError{Store: "s"}), "there is no store s"},
		{errors.New("no room"), "start worker: no room"},
	} {
		s := New(&volumeEngine{}, Config{Store: "s"})
		s.launch = func(context.Context, job) (conn, error) { return nil, tc.err }
		_, err := s.start(t.Context(), job{}, nil)
		assert.Error(t, err, tc.want)
	}
}

func TestRemovingFromAStoreThatIsGoneIsDone(t *testing.T) {
	f := &volumeEngine{}
	s := New(f, Config{})
	_, err := s.Remove(t.Context(), RemoveOptions{})
	assert.NilError(t, err)
	assert.Equal(t, f.made, 0)
}

func TestAStoreInMemoryIsRefused(t *testing.T) {
	f := &volumeEngine{there: &volume.Volume{Driver: "local", Options: map[string]string{"type": "tmpfs", "device": "tmpfs"}}}
	err := (&storeVolume{docker: f, StoreRef: StoreRef{Name: "s"}}).findOrMake(t.Context())
	assert.ErrorContains(t, err, "in memory only (tmpfs)")
	assert.Assert(t, cerrdefs.IsInvalidArgument(err))
}

// A volume that was made after the store was removed, or on another engine, may have its name.
func TestAnotherStoreOfThatNameIsNoStore(t *testing.T) {
	for name, tc := range map[string]struct {
		there, asked string
		want         bool
	}{
		"the same": {"one", "one", true}, "another": {"two", "one", false}, "without an ID": {"", "one", false}, "any": {"two", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &volumeEngine{there: &volume.Volume{Name: "s", Driver: "local", Labels: map[string]string{labels.KeyStoreID: tc.there}}}
			s := New(f, Config{Store: "default"}).At(StoreRef{Name: "s", ID: tc.asked, Snapshot: "first"})
			assert.Equal(t, s.Store(), "s")
			err := s.store.find(t.Context())
			if tc.want {
				assert.NilError(t, err)
				return
			}
			assert.Error(t, err, "the volumes of snapshot first are missing: volume s on this engine is another store than the one that held them")
			assert.Assert(t, cerrdefs.IsNotFound(err))
			_, err = s.Remove(t.Context(), RemoveOptions{})
			assert.NilError(t, err) // it went with all that was in it
		})
	}
}
