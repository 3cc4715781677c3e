package removal

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// removeLost removes what stores hold for the snapshots that words name by their whole ID, and that have lost their
// images. Of the other words that name no snapshot it notes whether there are lost ones.
func (rm *Remover) removeLost(ctx context.Context, all removals, o Options, p plan.Progress) {
	unknown := slices.DeleteFunc(slices.Clone(all), func(r *Removal) bool {
		_, none := errors.AsType[*catalog.NotFoundError](r.Err)
		return !none
	})
	if len(unknown) == 0 {
		return
	}
	lost, err := rm.archives.Lost(ctx, p)
	if err != nil || len(lost) == 0 {
		return // what is said of the words already is true
	}
	for _, r := range unknown {
		at := slices.IndexFunc(lost, func(l archives.Lost) bool { return isLost(r.Word, l) })
		if at < 0 {
			if none, ok := errors.AsType[*catalog.NotFoundError](r.Err); ok {
				none.Lost = true
			}
			continue
		}
		if r.Snapshot, r.Err = lost[at].Snapshot, nil; r.Snapshot.Pinned && !o.Force {
			r.Err = &catalog.PinnedError{ID: r.Snapshot.ID, Name: r.Snapshot.Name}
			continue
		}
		failed, _ := rm.archives.Remove(ctx, []catalog.Snapshot{r.Snapshot}, nil, p)
		r.Err = failed[r.Snapshot.ID]
		lost = slices.Delete(lost, at, at+1)
	}
}

// isLost tells whether a word is the whole ID of a lost snapshot, alone or behind its container.
func isLost(word string, l archives.Lost) bool {
	container, id, hasContainer := strings.Cut(word, ":")
	if !hasContainer {
		return labels.ID(word) == l.ID
	}
	return container == l.Container.Name && labels.ID(id) == l.ID
}
