package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// latestOfContainer finds what a word means if it is the name of a container: its
// latest snapshot, also if somebody has removed that tag; nil: it has none.
func (cat *Catalog) latestOfContainer(ctx context.Context, container string) (*Snapshot, error) {
	held, err := cat.Holder(ctx, Tag{Repository(container), labels.Latest})
	if err != nil || held.Snapshot != nil {
		return held.Snapshot, err
	}
	all, err := cat.Find(ctx, nil, Repository(container))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil // newest first
}

// asOf finds the newest snapshot of a container that is at least as old as when says: a
// time, or how long ago.
func (cat *Catalog) asOf(ctx context.Context, word, container, when string) (Snapshot, error) {
	limit, ok := parsePast(when, cat.now())
	if !ok || !labels.IsContainerName(container) {
		return Snapshot{}, fmt.Errorf("invalid snapshot %q: after @ use something like 5m, 2026-03-14T09:26 or 2026-03-14", word)
	}
	all, err := cat.Find(ctx, nil, Repository(container))
	if err != nil {
		return Snapshot{}, err
	}
	if len(all) == 0 {
		return Snapshot{}, cat.nothingOf(ctx, container)
	}
	at := slices.IndexFunc(all, func(s Snapshot) bool { return !s.Created.After(limit) })
	if at < 0 {
		oldest := all[len(all)-1]
		return Snapshot{}, &NotFoundError{Word: word, Reason: fmt.Sprintf("container %s has no snapshot that is as old: the oldest, %s, is of %s",
			container, oldest.ID, oldest.Created.In(limit.Location()).Format("2006-01-02T15:04:05"))}
	}
	return all[at], nil
}

// nothingOf is why a word that is no snapshot, but may be a container, means nothing.
func (cat *Catalog) nothingOf(ctx context.Context, word string) error {
	c, err := cat.docker.InspectIfThere(ctx, word)
	if err != nil || c == nil || dockerop.ContainerName(*c) != word {
		return &NotFoundError{Word: word}
	}
	return &NotFoundError{Word: word, Reason: fmt.Sprintf("container %s has no snapshots", word)}
}

// parsePast reads a duration before now, or a time; without a zone it is that of now.
func parsePast(value string, now time.Time) (time.Time, bool) {
	if limit, ok := ParseAge(value, now); ok {
		return limit.In(now.Location()), true
	}
	value = strings.Replace(value, " ", "T", 1)
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if limit, err := time.ParseInLocation(layout, value, now.Location()); err == nil {
			return limit, true
		}
	}
	return time.Time{}, false
}
