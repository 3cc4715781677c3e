package snapshot

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// keyVolume is an empty volume. One of its labels is the engine's key: whoever
// may ask the engine for it rules the engine already, while images, which come
// from anywhere, cannot bring one along. Snapshots are sealed with it, so that
// those that were made here can be told from those that only say so.
const keyVolume = "cua-snapshot-key"

const (
	labelKey = labels.Prefix + "key" // keyBytes bytes in hex
	keyBytes = 32
)

// engineKey returns the key of this engine, and makes one if it has none. If two
// clients do so at once, the engine hands both of them the same volume.
func (e *Engine) engineKey(ctx context.Context) ([]byte, error) {
	key, err := e.knownKey(ctx)
	if err != nil || key != nil {
		return key, err
	}
	random := make([]byte, keyBytes)
	if _, err := io.ReadFull(e.random, random); err != nil {
		return nil, fmt.Errorf("make the engine's key: %w", err)
	}
	made, err := e.docker.VolumeCreate(ctx, volume.CreateOptions{Name: keyVolume, Driver: "local", Labels: map[string]string{
		labels.KeyVersion: labels.SchemaVersion, labelKey: hex.EncodeToString(random),
	}})
	if err != nil {
		return nil, fmt.Errorf("create volume %s: %w", keyVolume, err)
	}
	return readKey(made)
}

// knownKey returns the key of this engine, or nil if it has none: nothing that is
// there was made here then.
func (e *Engine) knownKey(ctx context.Context) ([]byte, error) {
	found, err := e.docker.VolumeInspect(ctx, keyVolume)
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect volume %s: %w", keyVolume, err)
	}
	return readKey(found)
}

func readKey(v volume.Volume) ([]byte, error) {
	key, err := hex.DecodeString(v.Labels[labelKey])
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("volume %s holds no key: remove it, then the next snapshot makes one", keyVolume)
	}
	return key, nil
}

// isForeign tells whether a snapshot cannot be shown to be made on the engine that
// has this ID and this key.
func (s Snapshot) isForeign(engineID string, key []byte) bool {
	return s.EngineID != engineID || key == nil || !labels.IsSealed(s.Record, key)
}
