package volumebackup

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// StoreRef names a store as the labels of a snapshot do.
type StoreRef struct {
	Name     string
	ID       string // tells it from others of its name; empty: any of that name will do
	Snapshot string // the snapshot that was stored there, for people
}

// NoStoreError means that the engine does not have the store: there is no volume of its name, or the volume is another
// store. A reader does not make one, which would be empty. It is an errdefs not-found error.
type NoStoreError struct {
	Store    string
	Snapshot string // the snapshot whose volumes were looked for there; empty: no certain one's
	IsOther  bool   // another store has the name
}

func (e *NoStoreError) Error() string {
	switch {
	case e.Snapshot == "":
		return "there is no store " + e.Store
	case e.IsOther:
		return fmt.Sprintf("the volumes of snapshot %s are missing: volume %s on this engine is another store than the one that held them", e.Snapshot, e.Store)
	default:
		return fmt.Sprintf("the volumes of snapshot %s are missing: the store %s that held them is not there", e.Snapshot, e.Store)
	}
}

// Unwrap returns the error's class.
func (e *NoStoreError) Unwrap() error { return protocol.NotFound }

// storeVolume is the volume in which archives are kept.
type storeVolume struct {
	docker Docker
	StoreRef

	mu    sync.Mutex
	found *volume.Volume // once it has been looked for; nil: it was not there
}

// findStore makes sure that there is a store, if the worker needs one. It makes the store if the worker may.
func (j job) findStore(ctx context.Context) error {
	switch {
	case j.rights.noStore:
		return nil
	case j.rights.makesStore:
		return j.store.findOrMake(ctx)
	default:
		return j.store.find(ctx)
	}
}

// find looks for the volume, and fails with a [NoStoreError] if it is not there.
func (s *storeVolume) find(ctx context.Context) error {
	return s.open(func() (volume.Volume, error) { return s.docker.VolumeInspect(ctx, s.Name) })
}

// findOrMake looks for the volume, and makes it if it is not there. The engine would make it with the worker, but would
// not say that it is new.
func (s *storeVolume) findOrMake(ctx context.Context) error {
	return s.open(func() (volume.Volume, error) {
		v, err := s.docker.VolumeInspect(ctx, s.Name)
		if !cerrdefs.IsNotFound(err) {
			return v, err
		}
		return s.docker.VolumeCreate(ctx, volume.CreateOptions{Name: s.Name, Labels: map[string]string{
			labels.KeyVersion: labels.SchemaVersion, labels.KeyStoreID: rand.Text(),
		}})
	})
}

// open keeps the volume that look returns, if a store can be there. It looks once.
func (s *storeVolume) open(look func() (volume.Volume, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found != nil {
		return nil
	}
	v, err := look()
	switch {
	case cerrdefs.IsNotFound(err):
		return &NoStoreError{Store: s.Name, Snapshot: s.Snapshot}
	case err != nil:
		return fmt.Errorf("inspect store %s: %w", s.Name, err)
	case v.Options["type"] == "tmpfs":
		return fmt.Errorf("volume %s is in memory only (tmpfs), and loses what it holds as soon as nobody uses it: a store cannot be there: %w", s.Name, cerrdefs.ErrInvalidArgument)
	case s.ID != "" && v.Labels[labels.KeyStoreID] != s.ID:
		return &NoStoreError{Store: s.Name, Snapshot: s.Snapshot, IsOther: true}
	}
	s.found = &v
	return nil
}

// id tells the volume from others of its name: on other engines, or made after it was
// removed. One that somebody else has made has none.
func (s *storeVolume) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil {
		return ""
	}
	return s.found.Labels[labels.KeyStoreID]
}

// isPlain tells whether it is for sure on the same filesystem as the engine's own
// volumes.
func (s *storeVolume) isPlain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found != nil && s.found.Driver == "local" && len(s.found.Options) == 0
}

// isShared tells whether other engines may have the same store.
func (s *storeVolume) isShared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found != nil && (s.found.Driver != "local" || s.found.Options["device"] != "")
}
