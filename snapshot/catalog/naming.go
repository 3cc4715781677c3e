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

// naming gives a new snapshot its name: a tag, which any client can move at any time. Of
// several clients that want the same name at once one gets it.
//
// Each has its ID tag by now, and looks whether the name is free before it takes it. So
// afterwards each sees all the others that had looked before the name was taken. Who
// sees that another one has the name gives way. Who has it waits for those that have
// looked but not taken it yet, and then it stays.
type naming struct {
	engine   *Catalog
	snapshot Snapshot
	name     Tag
	before   Holder // who had the name when the snapshot was begun, and is replaced
	late     bool   // whoever was to wait may have stopped waiting before the name was taken
}

// A snapshot that was given the same name but has no tag of it may be about to take it,
// for namesakeGrace. One whose image is older by namesakeAge has lost it, or its client
// was killed before it took it.
const (
	namesakeGrace = 3 * time.Second
	NamesakeAge   = 10 * time.Minute
)

// take sets the tag, if it is free, or its holder is to be replaced.
func (n *naming) take(ctx context.Context, rollback *dockerop.Rollback) error {
	e, began := n.engine, n.engine.now()
	now, err := e.Holder(ctx, n.name)
	if err != nil {
		return err
	}
	if now.imageID != "" && now.imageID != n.before.imageID {
		return n.taken(now.Snapshot != nil)
	}
	rollback.Add(n.giveBack)
	if err := e.docker.Tag(ctx, n.snapshot.ImageID, n.name.String()); err != nil {
		return fmt.Errorf("tag image %s: %w", n.name, err)
	}
	n.late = e.now().Sub(began) >= namesakeGrace
	return nil
}

// giveBack makes the tag what it was, unless somebody else has it by now.
func (n *naming) giveBack(ctx context.Context) error {
	now, err := n.engine.Holder(ctx, n.name)
	if err != nil || now.imageID != n.snapshot.ImageID {
		return err
	}
	return n.engine.docker.Retag(ctx, n.name.String(), n.before.imageID)
}

// keep makes sure that the name stays this snapshot's.
func (n *naming) keep(ctx context.Context) error {
	patience := n.engine.now().Add(namesakeGrace)
	return dockerop.Poll(ctx, func() (bool, error) {
		images, err := n.engine.ListImages(ctx, n.name.repository)
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
		return !waits || n.engine.now().After(patience), nil
	})
}

// rivals are other snapshots that were given the name, and have it or may be about to.
func (n *naming) rivals(images []image.Summary) []image.Summary {
	own := slices.IndexFunc(images, func(i image.Summary) bool { return i.ID == n.snapshot.ImageID })
	return slices.DeleteFunc(slices.Clone(images), func(i image.Summary) bool {
		isSnapshot := slices.Contains(i.RepoTags, Tag{n.name.repository, i.Labels[labels.KeyID]}.String())
		if !isSnapshot || i.Labels[labels.KeyName] != n.name.tag || i.ID == n.snapshot.ImageID || i.ID == n.before.imageID {
			return true
		}
		has := slices.Contains(i.RepoTags, n.name.String())
		return !has && own >= 0 && i.Created < images[own].Created-int64(NamesakeAge.Seconds())
	})
}

func (n *naming) taken(bySnapshot bool) error {
	return &NameTakenError{Ref: n.snapshot.word(n.name.tag), Reuse: bySnapshot}
}
