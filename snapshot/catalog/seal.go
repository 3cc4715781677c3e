package catalog

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// KeyVolume is the name of an empty volume. One of its labels holds the engine's key, with which
// snapshots are sealed. Whoever can ask the engine for that label controls the engine anyway, and
// an image from elsewhere cannot bring the key along. So the seal shows which snapshots were made
// here.
const KeyVolume = "cua-snapshot-key"

// LabelKey is the label with the key: keyBytes bytes in hex.
const (
	LabelKey = labels.Prefix + "key"
	keyBytes = 32
)

// EngineKey returns the engine's key, and makes one if there is none. If two clients make one at
// once, the engine hands both the same volume.
func (cat *Catalog) EngineKey(ctx context.Context) ([]byte, error) {
	found, err := cat.keyVolume(ctx)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return cat.makeKey(ctx)
	case !dockerop.IsUnlabelled(*found):
		return readKey(*found)
	}
	if err := cat.removeUnlabelledKey(ctx); err != nil {
		return nil, err
	}
	return cat.makeKey(ctx)
}

// KnownKey returns the engine's key, or nil if it has none. Then no snapshot on it was made here.
func (cat *Catalog) KnownKey(ctx context.Context) ([]byte, error) {
	found, err := cat.keyVolume(ctx)
	if err != nil || found == nil || dockerop.IsUnlabelled(*found) {
		return nil, err
	}
	return readKey(*found)
}

// keyVolume returns the volume of the key, or nil if there is none.
func (cat *Catalog) keyVolume(ctx context.Context) (*volume.Volume, error) {
	found, err := cat.docker.VolumeInspect(ctx, KeyVolume)
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect volume %s: %w", KeyVolume, err)
	}
	return &found, nil
}

func (cat *Catalog) makeKey(ctx context.Context) ([]byte, error) {
	random := make([]byte, keyBytes)
	if _, err := io.ReadFull(cat.random, random); err != nil {
		return nil, fmt.Errorf("make the engine's key: %w", err)
	}
	made, err := cat.docker.VolumeCreate(ctx, volume.CreateOptions{Name: KeyVolume, Driver: "local", Labels: map[string]string{
		labels.KeyVersion: labels.SchemaVersion, LabelKey: hex.EncodeToString(random),
	}})
	if err != nil {
		return nil, fmt.Errorf("create volume %s: %w", KeyVolume, err)
	}
	return readKey(made)
}

// removeUnlabelledKey removes the volume of the key that the engine was killed over ([dockerop.IsUnlabelled]). It looks once more,
// under a lock: of two clients the slower one must not remove the key that the other has made by then.
func (cat *Catalog) removeUnlabelledKey(ctx context.Context) error {
	lock, err := cat.docker.Lock(ctx, dockerop.LockName(dockerop.NameLocks, KeyVolume), nil, cat.random, cat.now)
	if err != nil {
		return fmt.Errorf("lock the engine's key: %w", err)
	}
	defer func() { _, _ = lock.Release(ctx) }() // what is not released, others take as from a dead client
	found, err := cat.keyVolume(ctx)
	if err != nil || found == nil || !dockerop.IsUnlabelled(*found) {
		return err
	}
	return dockerop.Describe(cat.docker.VolumeRemove(ctx, KeyVolume, false), "remove volume "+KeyVolume)
}

func readKey(v volume.Volume) ([]byte, error) {
	key, err := hex.DecodeString(v.Labels[LabelKey])
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("volume %s holds no key: remove it, then the next snapshot makes one", KeyVolume)
	}
	return key, nil
}

// IsForeign tells whether the snapshot cannot be proved to be of the engine with this ID and key.
// key may be nil.
func (s Snapshot) IsForeign(engineID string, key []byte) bool {
	return s.EngineID != engineID || !s.IsSealed(key)
}

// IsSealed tells whether the snapshot's labels are what was sealed with the engine's key, which may be nil.
func (s Snapshot) IsSealed(key []byte) bool {
	r := s.Record
	if s.LostName != "" { // a tag that is gone changes no label
		r.Name = s.LostName
	}
	return key != nil && labels.IsSealed(r, key)
}
