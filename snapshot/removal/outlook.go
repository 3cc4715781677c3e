package removal

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
)

// OutlookOptions says of which snapshots an [Outlook] tells.
type OutlookOptions struct {
	Policy retention.Policy // the user's settings
	Filter catalog.Filter
	By     space.Grouping // empty: no groups
}

// Outlook tells what the chosen snapshots occupy and, of all snapshots, how near they are to the limits
// and what pruning would remove.
type Outlook struct {
	space.Report

	Uses     []retention.Use
	Prunable int   // snapshots
	Frees    int64 // bytes that are free when those are gone

	Removed      int   // images of removed snapshots that containers use, or that the next sweep frees
	RemovedBytes int64 // of their writable layers
}

// Outlook measures all snapshots. It changes nothing.
func (rm *Remover) Outlook(ctx context.Context, o OutlookOptions, p plan.Progress) (Outlook, error) {
	d, err := rm.decide(ctx, PruneOptions{Options: retention.Options{Policy: o.Policy, DryRun: true}, measures: true}, p)
	if err != nil {
		return Outlook{}, err
	}
	chosen, err := o.Filter.Apply(d.snapshots)
	if err != nil {
		return Outlook{}, err
	}
	isChosen := map[string]bool{}
	for _, s := range chosen {
		isChosen[s.ImageID] = true
	}
	choose := func(s catalog.Snapshot) bool { return isChosen[s.ImageID] }
	found := Outlook{Report: space.NewReport(d.snapshots, d.measured, choose, o.By.GroupOf), Uses: retention.Uses(d.situation)}
	gone := make([]bool, len(d.decisions))
	for i, decision := range d.decisions {
		if gone[i] = decision.Removed; gone[i] {
			found.Prunable++
		}
	}
	found.Frees = retention.Freed(d.situation.Sets, gone)
	removed, err := rm.catalog.RemovedImages(ctx)
	for _, summary := range removed {
		found.Removed++
		if record, err := labels.Decode(summary.Labels); err == nil {
			found.RemovedBytes += record.Size
		}
	}
	return found, err
}
