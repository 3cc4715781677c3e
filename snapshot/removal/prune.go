package removal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// PruneOptions says what to prune. The zero value of Filter means all snapshots.
type PruneOptions struct {
	retention.Options

	Filter catalog.Filter
	// Agreed is what a dry run has shown to the user: nothing else is removed. Nil means that nobody
	// was asked.
	Agreed *Pruned

	measures bool // measure what they occupy, also if that is surely below the limit
}

// Pruning is what became of one snapshot, and why.
type Pruning struct {
	Snapshot catalog.Snapshot
	retention.Decision

	Err error // removing it has failed
}

// Pruned is the result of [Remover.Prune].
type Pruned struct {
	All   []Pruning // newest first, without those that the filter leaves out
	Freed int64     // bytes that are free now; see [space.Scale]
}

// Removed returns those that were removed, or would be.
func (p Pruned) Removed() []Pruning {
	return slices.DeleteFunc(slices.Clone(p.All), func(one Pruning) bool { return !one.Removed })
}

// Prune removes the snapshots that are beyond the limits. It goes on after a snapshot that cannot be
// removed, whose result has an error then. With DryRun it changes nothing.
func (rm *Remover) Prune(ctx context.Context, o PruneOptions, p plan.Progress) (Pruned, error) {
	decided, err := rm.decide(ctx, o, p)
	if err != nil {
		return Pruned{}, err
	}
	if o.Agreed != nil {
		decided.keepAllBut(*o.Agreed)
	}
	result := decided.result()
	if o.DryRun || len(result.Removed()) == 0 {
		return result, nil
	}
	early := rm.docker.AskInfoEarly(context.WithoutCancel(ctx))
	defer early.Stop()
	return rm.removeDecided(ctx, decided, early, p)
}

// decided is what was observed, and what is to be done about it.
type decided struct {
	snapshots []catalog.Snapshot
	measured  space.Measured // if a limit needs it
	situation retention.Situation
	decisions []retention.Decision
}

// result shows all snapshots that were chosen.
func (d decided) result() Pruned {
	var r Pruned
	for i, decision := range d.decisions {
		if !d.situation.Snapshots[i].Left {
			r.All = append(r.All, Pruning{Snapshot: d.snapshots[i], Decision: decision})
		}
	}
	return r
}

// keepAllBut keeps the snapshots that were not to be removed before.
func (d decided) keepAllBut(before Pruned) {
	agreed := map[string]bool{}
	for _, one := range before.Removed() {
		agreed[one.Snapshot.ImageID] = true
	}
	for i := range d.decisions {
		if one := &d.decisions[i]; one.Removed && !agreed[d.snapshots[i].ImageID] {
			*one = retention.Decision{Reason: retention.WithinLimits, Detail: "nobody was asked about it"}
		}
	}
}

// decide observes all snapshots, and decides about those that match the filter.
func (rm *Remover) decide(ctx context.Context, o PruneOptions, p plan.Progress) (decided, error) {
	p.Status("prune", "looking at all snapshots")
	all, err := rm.catalog.Find(ctx, p, catalog.Namespace+"*")
	if err != nil {
		return decided{}, err
	}
	chosen, err := o.Filter.Apply(all)
	if err != nil {
		return decided{}, err
	}
	containers, err := rm.docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return decided{}, fmt.Errorf("list containers: %w", err)
	}
	unfinished, ended, err := rm.runs(ctx, all)
	if err != nil {
		return decided{}, err
	}
	now, err := rm.earliest(ctx)
	if err != nil {
		return decided{}, err
	}
	d := decided{snapshots: all, situation: retention.Situation{
		Snapshots: describe(all, chosen, containers), Lines: policies(o.Options, all, containers, p), UnfinishedRuns: unfinished, EndedRuns: ended,
		Options: o.Options, Now: now,
	}}
	if o.measures || !o.ExpiredOnly && mayExceed(d.situation) {
		p.Status("prune", "measuring what they occupy")
		if d.measured, err = rm.scale.Measure(ctx, all, p); err != nil {
			return decided{}, err
		}
		d.situation.Sets = d.measured.Sets()
	}
	d.decisions = retention.Decide(d.situation)
	return d, nil
}

// runs returns the IDs of the runs that have not ended, and of the others. While a session is written, the list
// may lack it; but its name leads to it at any moment, so a run whose start is there is asked for by name.
func (rm *Remover) runs(ctx context.Context, all []catalog.Snapshot) (unfinished, ended []string, err error) {
	sessions, err := rm.catalog.Sessions(ctx)
	if err != nil {
		return nil, nil, err
	}
	status := map[string]session.Status{}
	for _, s := range sessions {
		status[s.RunID] = s.Status
	}
	for _, s := range all {
		if _, listed := status[s.RunID]; listed || s.Trigger != labels.TriggerRunStart || s.RunID == "" {
			continue
		}
		kept, err := rm.catalog.Session(ctx, s.RunID)
		if _, none := errors.AsType[*catalog.RunNotFoundError](err); err != nil && !none {
			return nil, nil, err
		}
		status[s.RunID] = kept.Status // none if nobody kept the session
	}
	for runID, one := range status {
		switch one {
		case session.StatusUnfinished:
			unfinished = append(unfinished, runID)
		case session.StatusCompleted, session.StatusFailed:
			ended = append(ended, runID)
		}
	}
	return unfinished, ended, nil
}

// describe says of each snapshot what its labels do not.
func describe(all, chosen []catalog.Snapshot, containers []container.Summary) []retention.Snapshot {
	isChosen := map[string]bool{}
	for _, s := range chosen {
		isChosen[s.ImageID] = true
	}
	users, undoes := usersByImage(containers), map[string]string{}
	byID := map[string]catalog.Snapshot{}
	for _, s := range all {
		byID[string(s.ID)] = s
	}
	var workers []container.Summary
	for _, c := range containers {
		for _, id := range []string{c.Labels[labels.KeyUndo], undoOfKept(all, c.ID)} {
			if s, known := byID[id]; known {
				undoes[id], undoes[s.Undoes()] = dockerop.SummaryName(c), dockerop.SummaryName(c)
			}
		}
		if _, is := c.Labels[volumebackup.LabelPurpose]; is {
			workers = append(workers, c)
		}
	}
	described := make([]retention.Snapshot, len(all))
	for i, s := range all {
		one := retention.Snapshot{Record: s.Record, Line: lineOf(s), UndoOf: undoes[string(s.ID)], Left: !isChosen[s.ImageID]}
		if names := usersOf(s, users); len(names) > 0 {
			one.InUse = "container " + strings.Join(names, ", ")
		} else if isNamedBy(workers, s.ID) {
			one.InUse = "an operation that is not over"
		}
		described[i] = one
	}
	return described
}

// undoOfKept is the snapshot that takes the last restore in place of a container back that was kept: only volumes of it
// were restored. No label says so, because nobody can change a container's; but else the container that was captured
// before a restore would be gone.
func undoOfKept(all []catalog.Snapshot, id string) string {
	var last catalog.Snapshot
	for _, s := range all {
		if s.Trigger == labels.TriggerPreRestore && s.Container.ID == id && s.Created.After(last.Created) {
			last = s
		}
	}
	return string(last.ID)
}

// lineOf names what a snapshot is counted with: its container or, of a state, its line. No line has the
// name of a container.
func lineOf(s catalog.Snapshot) string { return s.Container.Name }

// isNamedBy tells whether the journal of a worker is about a snapshot. A restore that is under way, or
// was interrupted, needs it.
func isNamedBy(workers []container.Summary, id labels.ID) bool {
	return slices.ContainsFunc(workers, func(w container.Summary) bool {
		for _, text := range w.Labels {
			if strings.Contains(text, string(id)) {
				return true
			}
		}
		return false
	})
}

// policies returns the policy of each line. A container that is gone has the labels that it had when
// its newest snapshot was taken. Snapshots are newest first.
func policies(o retention.Options, all []catalog.Snapshot, containers []container.Summary, p plan.Progress) map[string]retention.Policy {
	present := map[string]map[string]string{}
	for _, c := range containers {
		present[dockerop.SummaryName(c)] = c.Labels
	}
	lines := map[string]retention.Policy{}
	for _, s := range all {
		if _, known := lines[lineOf(s)]; known {
			continue
		}
		if policy, isKnown := o.Known[lineOf(s)]; isKnown {
			lines[lineOf(s)] = policy
			continue
		}
		if s.Kind == labels.KindState { // each create says how many are kept
			policy := o.Policy
			policy.MaxSnapshots, policy.MaxAgent, policy.MaxAge = 0, 0, 0
			lines[lineOf(s)], _ = retention.Options{Policy: policy, Limits: o.Limits}.Of(nil)
			continue
		}
		now, isThere := present[s.Container.Name]
		if !isThere {
			now = s.ContainerLabels()
		}
		policy, wrong := o.Of(now)
		for _, err := range wrong {
			p.Warn("prune", fmt.Sprintf("container %s: %v", s.Container.Name, err))
		}
		lines[lineOf(s)] = policy
	}
	return lines
}

// removeDecided removes what was decided, and measures what that frees.
func (rm *Remover) removeDecided(ctx context.Context, d decided, early dockerop.EarlyInfo, p plan.Progress) (Pruned, error) {
	layers, err := rm.scale.Layers(ctx, d.snapshots)
	if err != nil {
		return d.result(), err
	}
	victims := make([]*Removal, len(d.snapshots))
	var all removals
	for i, decision := range d.decisions {
		if decision.Removed {
			victims[i] = &Removal{Word: d.snapshots[i].Ref(), Snapshot: d.snapshots[i]}
			all = append(all, victims[i])
		}
	}
	p.Status("prune", fmt.Sprintf("removing %d snapshots", len(all)))
	rm.untagAll(ctx, all, p)
	result := d.result()
	if gone := all.left(); len(gone) > 0 {
		result.Freed = rm.freeRemoved(context.WithoutCancel(ctx), gone, early, p) + rm.freedLayers(context.WithoutCancel(ctx), layers, victims)
	}
	for i := range result.All {
		for _, r := range all {
			if r.Snapshot.ImageID == result.All[i].Snapshot.ImageID {
				result.All[i].Err = r.Err
			}
		}
	}
	return result, nil
}
