package removal

import (
	"context"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// KeepLast removes the oldest automatic states of a line, until there are most. 0 means no limit. What
// is pinned, named or taken by hand stays, and does not count.
func (rm *Remover) KeepLast(ctx context.Context, line string, most int, p plan.Progress) error {
	all, err := rm.catalog.Find(ctx, nil, catalog.Repository(line))
	if err != nil {
		return err
	}
	situation := retention.Situation{Now: rm.now(), Lines: map[string]retention.Policy{line: {MaxSnapshots: most}}}
	for _, s := range all {
		situation.Snapshots = append(situation.Snapshots, retention.Snapshot{Record: s.Record, Line: lineOf(s), Left: s.Kind != labels.KindState})
	}
	var words []string
	for i, d := range retention.Decide(situation) {
		if d.Removed && d.Reason == retention.TooMany {
			words = append(words, catalog.TagOf(line, string(all[i].ID)).String())
		}
	}
	if len(words) == 0 {
		return nil
	}
	for _, r := range rm.Remove(ctx, words, Options{}, p) {
		err = errors.Join(err, r.Err)
	}
	return err
}
