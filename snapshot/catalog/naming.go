package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// naming gives a new snapshot its name: a tag, which any client can move at any time. Of several
// clients that want the same name at once exactly one gets it.
//
// Each client has set its ID tag by now, and checks that the name is free before it takes it. So a
// client that has taken the name sees all others that may have found it free. A client that sees
// another with the name gives up. The one with the name waits until the others have taken the name
// or given up; after that it keeps it.
type naming struct {
	catalog  *Catalog
	snapshot Snapshot
	name     Tag
	before   Holder // had the name when the snapshot was begun; is replaced
	late     bool   // taking the name took so long that another client may have stopped waiting for it
}

// A snapshot that was given the same name, but does not have the tag, may be about to take it. It
// is waited for, for namesakeGrace. If its image is older by namesakeAge it has lost the name, or
// its client was killed before it took it.
const (
	namesakeGrace = 3 * time.Second
	namesakeAge   = 10 * time.Minute
)

// take sets the tag, if it is free or belongs to the snapshot that is to be replaced.
func (n *naming) take(ctx context.Context, rollback *dockerop.Rollback) error {
	cat, began := n.catalog, n.catalog.now()
	now, err := cat.Holder(ctx, n.name)
	if err != nil {
		return err
	}
	if now.imageID != "" && now.imageID != n.before.imageID {
		return n.taken(now.Snapshot != nil)
	}
	rollback.Add(n.giveBack)
	if err := cat.docker.Tag(ctx, n.snapshot.ImageID, n.name.String()); err != nil {
		return fmt.Errorf("tag image %s: %w", n.name, err)
	}
	n.late = cat.now().Sub(began) >= namesakeGrace
	return nil
}

// giveBack returns the tag to its earlier holder, unless somebody else has it by now.
func (n *naming) giveBack(ctx context.Context) error {
	now, err := n.catalog.Holder(ctx, n.name)
	if err != nil || now.imageID != n.snapshot.ImageID {
		return err
	}
	return n.catalog.docker.Retag(ctx, n.name.String(), n.before.imageID)
}

// keep waits until no other client can take the name any more. It fails if one has taken it.
func (n *naming) keep(ctx context.Context) error {
	patience := n.catalog.now().Add(namesakeGrace)
	return dockerop.Poll(ctx, func() (bool, error) {
		images, err := n.catalog.imagesNamed(ctx, n.name)
		if err != nil {
			return false, err
		}
		waits := false
		for _, rival := range n.rivals(images) {
			if n.late || slices.Contains(rival.RepoTags, n.name.String()) {
				n.before.imageID = rival.ID
				return false, n.taken(true)
			}
			waits = true
		}
		return !waits || n.catalog.now().After(patience), nil
	})
}

// rivals returns the other snapshots that were given the name, and have it or may be about to take
// it.
func (n *naming) rivals(images []image.Summary) []image.Summary {
	own := slices.IndexFunc(images, func(i image.Summary) bool { return i.ID == n.snapshot.ImageID })
	return slices.DeleteFunc(slices.Clone(images), func(i image.Summary) bool {
		isSnapshot := slices.Contains(i.RepoTags, Tag{n.name.repository, i.Labels[labels.KeyID]}.String())
		if !isSnapshot || i.Labels[labels.KeyName] != n.name.tag || i.ID == n.snapshot.ImageID || i.ID == n.before.imageID {
			return true
		}
		has := slices.Contains(i.RepoTags, n.name.String())
		return !has && own >= 0 && i.Created < images[own].Created-int64(namesakeAge.Seconds())
	})
}

func (n *naming) taken(bySnapshot bool) error {
	return &NameTakenError{Ref: n.snapshot.word(n.name.tag), Tag: n.name.String(), Reuse: bySnapshot}
}
