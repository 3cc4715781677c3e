package retention

import "slices"

// unit is what counts as one for the limits, and goes as a whole: a snapshot, or those that are left of a run that has ended.
// The snapshots of a run that has not ended count one by one: they may be many.
type unit []int // indices of snapshots, oldest first

// units returns the units of the snapshots that count, oldest first. The age of a unit is that of its newest snapshot.
func (d *deciding) units() []unit {
	type key struct {
		tally tally
		run   string
	}
	var all []unit
	open := map[key]int{} // places in all
	for _, i := range slices.Backward(d.order) {
		if !d.counts[i] || d.decisions[i].Removed {
			continue
		}
		one := &d.all[i]
		k := key{one.tally(), one.RunID}
		ended := one.RunID != "" && slices.Contains(d.EndedRuns, one.RunID)
		if at, known := open[k]; known && ended {
			all[at] = append(all[at], i)
			continue
		}
		if ended {
			open[k] = len(all)
		}
		all = append(all, unit{i})
	}
	for _, u := range all {
		slices.Reverse(u)
	}
	slices.Reverse(all)
	return all
}

// removeUnit removes all snapshots of a unit, or returns false: one of them has to stay.
func (d *deciding) removeUnit(u unit, why Reason, detail string) bool {
	if slices.ContainsFunc(u, func(i int) bool { return d.stays[i] }) {
		return false
	}
	for _, i := range u {
		d.remove(i, why, detail)
	}
	return true
}
