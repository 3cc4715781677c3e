package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// lockPrefix begins the names of the volumes that are locks.
const lockPrefix = "cua-snapshot-run-"

// lockAge is how long the same client may hold a lock before others take it for dead. Reading and
// writing a session takes a tenth of a second.
const lockAge = 10 * time.Second

// lockDigits is how many digits of a digest the name of a lock has, lockNonce how many random bytes
// tell its holder.
const (
	lockDigits = 16
	lockNonce  = 16
)

// lockName returns the name of the volume that is the lock of a run.
func lockName(runID string) string {
	digest := sha256.Sum256([]byte(runID))
	return lockPrefix + hex.EncodeToString(digest[:])[:lockDigits]
}

// lock waits until no other client writes to the session of a run. The caller must call release.
//
// The lock is an empty volume. The engine lets a name exist once: whoever asks for it later is told the
// labels of the one that is there, and so who holds it.
func (k *Keeper) lock(ctx context.Context, runID string) (release func(), err error) {
	random := make([]byte, lockNonce)
	if _, err := io.ReadFull(k.random, random); err != nil {
		return nil, fmt.Errorf("lock run %s: %w", runID, err)
	}
	own, name := hex.EncodeToString(random), lockName(runID)
	var holder string
	var since time.Time
	err = dockerop.Poll(ctx, func() (bool, error) {
		made, err := k.docker.VolumeCreate(ctx, volume.CreateOptions{Name: name, Driver: "local", Labels: map[string]string{
			labels.KeyVersion: labels.SchemaVersion, labels.KeyLock: own,
		}})
		if err != nil {
			return false, fmt.Errorf("lock run %s: %w", runID, err)
		}
		switch now := made.Labels[labels.KeyLock]; {
		case now == own:
			return true, nil
		case now != holder:
			holder, since = now, k.now()
		case k.now().Sub(since) >= lockAge:
			return false, k.unlock(ctx, name)
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return func() {
		after, cancel := dockerop.Cleanup(ctx)
		defer cancel()
		_ = k.unlock(after, name) // others take it for dead after lockAge
	}, nil
}

func (k *Keeper) unlock(ctx context.Context, name string) error {
	err := k.docker.VolumeRemove(ctx, name, false)
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return dockerop.Describe(err, "remove volume "+name)
}
