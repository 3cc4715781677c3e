package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// naming gives a new snapshot its name: a tag, which any client can move at any time. Of several
// clients that want the same name at once exactly one gets it: they look whether it is free, and take it, under a lock.
//
// A client that stands still between the two for so long that another one breaks its lock may move a tag that
// the other has got. It notices that it has lost the lock, and gives the tag back. Every other image with the name in its labels
// may be that one's; it is looked for only then, because a containerd image store needs a millisecond for each of an engine's images.
type naming struct {
	catalog  *Catalog
	snapshot Snapshot
	name     Tag
	before   Holder // had the name when the snapshot was begun; is replaced
	lock     *dockerop.Lock
}

// rivalAge is how old the image of a client can be that has got the name while this one stood still.
const rivalAge = 10 * time.Minute

// take sets the tag, if it is free or belongs to the snapshot that is to be replaced.
func (n *naming) take(ctx context.Context, rollback *dockerop.Rollback) error {
	rollback.Progress.Status("name", "taking the name "+n.snapshot.word(n.name.tag))
	var err error
	if n.lock, err = n.catalog.lockName(ctx, n.name, nil); err != nil {
		return err
	}
	err = n.takeFree(ctx, rollback)
	wasHeld, unreleased := n.lock.Release(ctx)
	switch {
	case err != nil:
		return err
	case wasHeld:
		return nil
	}
	return errors.Join(n.findRival(ctx), unreleased)
}

func (n *naming) takeFree(ctx context.Context, rollback *dockerop.Rollback) error {
	now, err := n.catalog.Holder(ctx, n.name)
	if err != nil {
		return err
	}
	if now.imageID != "" && now.imageID != n.before.imageID {
		return n.taken(now.Snapshot != nil)
	}
	rollback.Add(n.giveBack)
	if err := n.catalog.docker.Tag(ctx, n.snapshot.ImageID, n.name.String()); err != nil {
		return fmt.Errorf("tag image %s: %w", n.name, err)
	}
	return nil
}

// lockName takes the lock of a name. The labels in about say what for.
func (cat *Catalog) lockName(ctx context.Context, name Tag, about map[string]string) (*dockerop.Lock, error) {
	lock, err := cat.docker.Lock(ctx, nameLock(name), about, cat.random, cat.now)
	if err != nil {
		return nil, fmt.Errorf("lock the name %s: %w", name.tag, err)
	}
	return lock, nil
}

// nameLock is the volume that is the lock of a name.
func nameLock(name Tag) string { return dockerop.LockName(dockerop.NameLocks, name.String()) }

// giveBack returns the tag to its earlier holder, unless somebody else has it by now. If the engine was out of reach when the lock
// was to be released, it is released now: else this client would wait for itself until it counts as dead.
func (n *naming) giveBack(ctx context.Context) error {
	_, _ = n.lock.Release(ctx)
	lock, err := n.catalog.lockName(ctx, n.name, nil)
	if err != nil {
		return err
	}
	defer func() { _, _ = lock.Release(ctx) }() // what is not released, others take as from a dead client
	now, err := n.catalog.Holder(ctx, n.name)
	if err != nil || now.imageID != n.snapshot.ImageID {
		return err
	}
	return n.catalog.docker.Retag(ctx, n.name.String(), n.before.imageID)
}

// findRival fails if another client may have got the name, which is its then.
func (n *naming) findRival(ctx context.Context) error {
	images, err := n.catalog.imagesNamed(ctx, n.name)
	if err != nil {
		return err
	}
	if found := n.rivals(images); len(found) > 0 {
		n.before.imageID = found[0].ID
		return n.taken(true)
	}
	return nil
}

// rivals returns the other snapshots that were given the name not long ago.
func (n *naming) rivals(images []image.Summary) []image.Summary {
	own := slices.IndexFunc(images, func(i image.Summary) bool { return i.ID == n.snapshot.ImageID })
	return slices.DeleteFunc(slices.Clone(images), func(i image.Summary) bool {
		isSnapshot := slices.Contains(i.RepoTags, Tag{n.name.repository, i.Labels[labels.KeyID]}.String())
		return !isSnapshot || i.Labels[labels.KeyName] != n.name.tag || i.ID == n.snapshot.ImageID || i.ID == n.before.imageID ||
			own >= 0 && i.Created < images[own].Created-int64(rivalAge.Seconds())
	})
}

func (n *naming) taken(bySnapshot bool) error {
	return &NameTakenError{Ref: n.snapshot.word(n.name.tag), Tag: n.name.String(), Reuse: bySnapshot}
}
