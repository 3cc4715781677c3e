package retention

import (
	"maps"
	"slices"
	"time"
)

// Use is how much of a limit is used. Used and Most are snapshots, bytes or, for the age, seconds.
type Use struct {
	Limit string // the name of the setting
	Line  string // if the limit is one for each line
	Used  int64
	Most  int64
}

// Uses tells how much is used of each limit that is set: for every line that has automatic snapshots,
// and for all of them together. Snapshots to which the limits do not apply are not counted.
func Uses(s Situation) []Use {
	d := newDeciding(s)
	d.protect()
	numbers, oldest, total := map[tally]int64{}, map[string]time.Duration{}, int64(0)
	for _, u := range d.units() {
		one := &d.all[u[len(u)-1]]
		numbers[one.tally()]++
		oldest[one.Line] = max(oldest[one.Line], s.Now.Sub(one.Created))
		if one.isInTotal() {
			total++
		}
	}
	var uses []Use
	add := func(limit, line string, used, most int64) {
		if most > 0 {
			uses = append(uses, Use{limit, line, used, most})
		}
	}
	for _, line := range slices.Sorted(maps.Keys(oldest)) {
		policy := d.policyOf(&Snapshot{Line: line})
		if number := numbers[tally{line: line}]; number > 0 {
			add(NameMaxSnapshots, line, number, int64(policy.MaxSnapshots))
		}
		if number := numbers[tally{line, true}]; number > 0 {
			add(NameMaxAgent, line, number, int64(policy.MaxAgent))
		}
		add(NameRetentionDays, line, int64(oldest[line].Seconds()), int64(policy.MaxAge.Seconds()))
	}
	inAll := s.Options.InAll()
	bytes, _, _ := d.weigh()
	add(NameMaxTotal, "", total, int64(inAll.MaxTotal))
	add(NameMaxSize, "", bytes, inAll.MaxSize)
	return uses
}
