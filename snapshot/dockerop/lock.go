package dockerop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"regexp"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// lockAge is how long the same client may hold a lock before others take it for dead. What is done under one takes a tenth of a
// second.
const lockAge = 10 * time.Second

// lockDigits is how many digits of a digest the name of a lock has, lockNonce how many random bytes
// tell its holder.
const (
	lockDigits = 16
	lockNonce  = 16
)

// What begins the name of a lock: of a name that a snapshot gets, and of a run.
const (
	NameLocks = "cua-snapshot-name-"
	RunLocks  = "cua-snapshot-run-"
)

// Lock is held by one client at a time, for a moment. It is an empty volume: the engine lets a name exist once, and tells whoever
// asks for it later the labels of the one that is there, and so who holds it. That takes a few milliseconds.
type Lock struct {
	docker *Engine
	volume string
	holder string
}

// LockName returns the name of the lock for something. The prefix, [NameLocks] or [RunLocks], says what kind of thing.
func LockName(prefix, about string) string {
	digest := sha256.Sum256([]byte(about))
	return prefix + hex.EncodeToString(digest[:])[:lockDigits]
}

var lockNames = regexp.MustCompile(fmt.Sprintf("^(%s|%s)[0-9a-f]{%d}$", NameLocks, RunLocks, lockDigits))

// IsLock tells whether a volume is a lock, or was to become one ([IsUnlabelled]).
func IsLock(v volume.Volume) bool {
	return v.Labels[labels.KeyLock] != "" || IsUnlabelled(v) && lockNames.MatchString(v.Name)
}

// LockLabels are those of a volume that is a lock. If its holder is killed, it is swept.
func LockLabels(holder string) map[string]string {
	return map[string]string{labels.KeyVersion: labels.SchemaVersion, labels.KeyLock: holder}
}

// LockNonce returns a word that no other client has.
func LockNonce(random io.Reader) (string, error) {
	nonce := make([]byte, lockNonce)
	_, err := io.ReadFull(random, nonce)
	return hex.EncodeToString(nonce), err
}

// Lock waits until no other client holds the lock of a name, and takes it. The caller must call [Lock.Release]. A client that has
// held it for ten seconds counts as dead, and loses it: [Lock.Release] tells whether that has happened. The labels in about, which
// may be nil, say what the lock is held for. Who wants it for the same does not wait: it goes on with what the other may have begun.
func (e *Engine) Lock(ctx context.Context, name string, about map[string]string, random io.Reader, now func() time.Time) (*Lock, error) {
	nonce, err := LockNonce(random)
	if err != nil {
		return nil, err
	}
	own := &Lock{docker: e, volume: name, holder: nonce}
	wanted := LockLabels(nonce)
	maps.Copy(wanted, about)
	var holder string
	var since time.Time
	err = Poll(ctx, func() (bool, error) {
		made, err := e.VolumeCreate(ctx, volume.CreateOptions{Name: name, Driver: "local", Labels: wanted})
		if err != nil {
			return false, fmt.Errorf("lock with volume %s: %w", name, err)
		}
		switch current := made.Labels[labels.KeyLock]; {
		case current == nonce:
			return true, nil
		case IsUnlabelled(made):
			return false, e.RemoveLock(ctx, name)
		case current == "": // somebody else's, with what he keeps in it
			return false, fmt.Errorf("lock with volume %s: there is a volume of that name which is no lock: remove it", name)
		case len(about) > 0 && isFor(made.Labels, about):
			return false, e.RemoveLock(ctx, name)
		case current != holder:
			holder, since = current, now()
		case now().Sub(since) >= lockAge:
			return false, e.RemoveLock(ctx, name)
		}
		return false, nil
	})
	if err != nil {
		_, _ = own.Release(ctx) // it may have been taken although the call failed
		return nil, err
	}
	return own, nil
}

// isFor tells whether the labels of a lock say that it is held for this.
func isFor(found, about map[string]string) bool {
	for key, value := range about {
		if found[key] != value {
			return false
		}
	}
	return true
}

// Release lets others have the lock, and tells whether it was still this client's: then nobody else has had it since it was taken.
// A call that fails is made again, for the next client would have to wait until this one counts as dead.
func (l *Lock) Release(ctx context.Context) (wasHeld bool, err error) {
	after, cancel := Cleanup(ctx)
	defer cancel()
	for range releaseTries {
		found, failed := l.docker.VolumeInspect(after, l.volume)
		switch {
		case cerrdefs.IsNotFound(failed):
			return wasHeld, nil
		case failed != nil:
			err = fmt.Errorf("inspect volume %s: %w", l.volume, failed)
			continue
		case found.Labels[labels.KeyLock] != l.holder:
			return wasHeld, nil
		}
		wasHeld = true
		if err = l.docker.RemoveLock(after, l.volume); err == nil {
			return true, nil
		}
	}
	return wasHeld, err
}

// releaseTries is how often a lock is released that cannot be.
const releaseTries = 3

// RemoveLock removes the volume that is a lock.
func (e *Engine) RemoveLock(ctx context.Context, name string) error {
	err := e.VolumeRemove(ctx, name, false)
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return Describe(err, "remove volume "+name)
}
