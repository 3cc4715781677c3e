package catalog

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// KeyVolume is an empty volume. One of its labels is the engine's key: whoever
// may ask the engine for it rules the engine already, while images, which come
// from anywhere, cannot bring one along. Snapshots are sealed with it, so that
// those that were made here can be told from those that only say so.
const KeyVolume = "cua-snapshot-key"

const (
	LabelKey = labels.Prefix + "key" // keyBytes bytes in hex
	KeyBytes = 32
)

// EngineKey returns the key of this engine, and makes one if it has none. If two
// clients do so at once, the engine hands both of them the same volume.
func (cat *Catalog) EngineKey(ctx context.Context) ([]byte, error) {
	key, err := cat.KnownKey(ctx)
	if err != nil || key != nil {
		return key, err
	}
	random := make([]byte, KeyBytes)
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

// KnownKey returns the key of this engine, or nil if it has none: nothing that is
// there was made here then.
func (cat *Catalog) KnownKey(ctx context.Context) ([]byte, error) {
	found, err := cat.docker.VolumeInspect(ctx, KeyVolume)
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect volume %s: %w", KeyVolume, err)
	}
	return readKey(found)
}

func readKey(v volume.Volume) ([]byte, error) {
	key, err := hex.DecodeString(v.Labels[LabelKey])
	if err != nil || len(key) != KeyBytes {
		return nil, fmt.Errorf("volume %s holds no key: remove it, then the next snapshot makes one", KeyVolume)
	}
	return key, nil
}

// IsForeign tells whether a snapshot cannot be shown to be made on the engine that
// has this ID and this key.
func (s Snapshot) IsForeign(engineID string, key []byte) bool {
	return s.EngineID != engineID || key == nil || !labels.IsSealed(s.Record, key)
}
