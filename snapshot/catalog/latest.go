package catalog

import (
	"context"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// LatestOf returns the reference that the newest snapshot of a container has as well.
func LatestOf(container string) string { return Tag{Repository(container), labels.Latest}.String() }

// giveLatest gives s the tag latest, or the newest snapshot of the container that is not in except,
// if that is newer. It looks for newer ones after it has moved the tag, so of several clients that
// do so at once the last one sees them all. It returns the snapshot that has the tag then.
func (cat *Catalog) giveLatest(ctx context.Context, s Snapshot, except IDSet) (Snapshot, error) {
	latest := LatestOf(s.Container.Name)
	holder := s
	for range dockerop.TagTries {
		err := cat.docker.Tag(ctx, holder.ImageID, latest)
		if cerrdefs.IsNotFound(err) && holder.ID != s.ID { // removed meanwhile
			holder = s
			continue
		}
		if err != nil {
			return Snapshot{}, fmt.Errorf("tag image %s: %w", latest, err)
		}
		newer, err := cat.newerThan(ctx, holder, except)
		if err != nil {
			return Snapshot{}, err
		}
		if newer == nil {
			return holder, nil
		}
		holder = *newer
	}
	return holder, nil
}

// aheadMost is how far newer snapshots are looked for after one that is of a time yet to come.
const aheadMost = 10 * time.Second

// newerThan returns the newest snapshot of the same container, if it is newer than s and not in
// except. It lists only snapshots made since: every image in a list costs milliseconds on a
// containerd image store.
func (cat *Catalog) newerThan(ctx context.Context, s Snapshot, except IDSet) (*Snapshot, error) {
	var patterns []string
	until := cat.now()
	if s.Created.After(until) { // a clock is wrong, and newer ones are dated after it
		until = s.Created.Add(aheadMost)
	}
	for _, pattern := range madeSince(s, until) {
		patterns = append(patterns, Tag{Repository(s.Container.Name), pattern}.String())
	}
	found, err := cat.Find(ctx, nil, patterns...)
	if err != nil {
		return nil, err
	}
	for _, other := range found { // newest first
		if other.ID != s.ID && !except[other.ID] {
			if newestFirst(other, s) < 0 {
				return &other, nil
			}
			break
		}
	}
	return nil, nil //nolint:nilnil // none is no error
}

// madeSince returns a few patterns that match the IDs of all snapshots made after s. An ID begins
// with its time, so one pattern for each second since then will do; if s is older, one for each
// minute, hour or day, and these may match some older snapshots, too.
func madeSince(s Snapshot, now time.Time) []string {
	const most = 16
	var patterns []string
	id := string(s.ID)
	for i := labels.IDTimeLength + 1; i < len(id); i++ { // other IDs of the same second
		patterns = append(patterns, id[:i]+"[^"+id[i:i+1]+"]*")
	}
	for _, piece := range []struct {
		unit   time.Duration
		digits int // of the time in an ID
	}{
		{time.Second, len("20060102-150405")},
		{10 * time.Second, len("20060102-15040")},
		{time.Minute, len("20060102-1504")},
		{time.Hour, len("20060102-15")},
		{24 * time.Hour, len("20060102")},
	} {
		first := s.Created.UTC().Truncate(piece.unit)
		if now.Sub(first) >= most*piece.unit {
			continue
		}
		if piece.unit == time.Second {
			first = first.Add(time.Second)
		}
		for t := first; !t.After(now); t = t.Add(piece.unit) {
			patterns = append(patterns, labels.IDTime(t)[:piece.digits]+"*")
		}
		return patterns
	}
	return []string{"*"}
}

// IDSet is a set of snapshot IDs.
type IDSet map[labels.ID]bool

// HandOverLatest takes the tag latest from s, if s has it, and gives it to the newest snapshot of
// the container that is not in except. s must be in except. It returns false if no snapshot is left
// for the tag.
func (cat *Catalog) HandOverLatest(ctx context.Context, s Snapshot, except IDSet) (passed bool, err error) {
	held, err := cat.Holder(ctx, Tag{Repository(s.Container.Name), labels.Latest})
	if err != nil {
		return false, err
	}
	if held.imageID != s.ImageID {
		return true, nil
	}
	return cat.SetLatest(ctx, s.Container.Name, except)
}

// SetLatest gives the tag latest to the newest snapshot of a container that is not in except. It
// returns false if there is none.
func (cat *Catalog) SetLatest(ctx context.Context, container string, except IDSet) (bool, error) {
	all, err := cat.Find(ctx, nil, Repository(container))
	if err != nil {
		return false, err
	}
	for _, other := range all { // newest first
		if !except[other.ID] {
			_, err := cat.giveLatest(ctx, other, except)
			return true, err
		}
	}
	return false, nil
}
