package capture

import (
	"context"
	"fmt"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// The snapshots of a container are dated in the order in which they were taken, although a clock may have been set back in
// between, or that of another client may be ahead: what is newest, what is the parent and what is beyond a limit all follow
// from the dates. So a snapshot is dated after the latest one, if that is of a time that is yet to come.

// clockSlack is how far the clocks of clients may be apart without anybody being told.
const clockSlack = time.Minute

// NewRequestFor is the request for snapshots of the containers with these names, which are taken now or, if one of them has a
// snapshot of a time that is yet to come, after that.
func (cr *Capturer) NewRequestFor(ctx context.Context, containers []string, p plan.Progress) (Request, error) {
	latest := make([]catalog.Holder, len(containers))
	for i, name := range containers {
		var err error
		if latest[i], err = cr.catalog.Holder(ctx, catalog.TagOf(name, labels.Latest)); err != nil {
			return Request{}, err
		}
	}
	r, err := cr.NewRequest(len(containers))
	if err != nil {
		return Request{}, err
	}
	return cr.dateAfter(r, latest, p)
}

// dateAfter returns the request with another time and other IDs, if one of the snapshots is of a time that is yet to come.
func (cr *Capturer) dateAfter(r Request, latest []catalog.Holder, p plan.Progress) (Request, error) {
	var newest time.Time
	for _, h := range latest {
		if h.Snapshot != nil && h.Snapshot.Created.After(newest) {
			newest = h.Snapshot.Created
		}
	}
	if !newest.After(r.created) {
		return r, nil
	}
	now := cr.now() // the request may have waited while others took theirs
	for _, h := range latest {
		s := h.Snapshot
		if s == nil {
			continue
		}
		if s.Created.Sub(now) > clockSlack {
			p.Warn("clock", fmt.Sprintf("snapshot %s of %s is of a time that is yet to come: the clock of this machine is wrong, or that of the one that took it was; the new snapshot is dated right after it", s.ID, s.Container.Name))
		}
	}
	after := newest.Add(time.Millisecond) // no more, so that clocks that are a little apart do not drive each other on
	switch ahead := newest.Sub(now); {
	case ahead <= 0:
		return r, nil
	case ahead > clockSlack: // IDs have seconds
		after = newest.Truncate(time.Second).Add(time.Second)
	}
	later, err := cr.requestAt(after, len(r.IDs))
	r.IDs, r.created = later.IDs, later.created
	return r, err
}

// latestOf are the holders of the tag latest of each source.
func latestOf(sources []Source) []catalog.Holder {
	latest := make([]catalog.Holder, len(sources))
	for i, s := range sources {
		latest[i] = s.latest
	}
	return latest
}
