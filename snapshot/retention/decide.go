package retention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Snapshot is what has to be known of a snapshot to decide about it.
type Snapshot struct {
	labels.Record

	Line   string // what it is counted with: the name of its container or, of a state, its line
	InUse  string // who uses it, in words; empty: nobody
	UndoOf string // the container whose latest restore in place it takes back; may be empty
	Left   bool   // leave it out: nothing is decided about it, and it is not counted
}

// Situation is all that a decision depends on.
type Situation struct {
	Snapshots []Snapshot
	Sets      []Set             // what the snapshots occupy; only looked at if there is a limit to that
	Lines     map[string]Policy // by the names of lines; a line that is not in it has the policy of Options
	// UnfinishedRuns are the IDs of the runs that have not ended. The snapshot of their start stays.
	UnfinishedRuns []string
	// EndedRuns are the IDs of the others. The limits leave no part of such a run: it counts as one, and goes as a whole.
	EndedRuns []string
	Options   Options
	Now       time.Time
}

// Reason says why a snapshot is kept or removed.
type Reason string

// Why a snapshot is removed, in the order in which these are looked at.
const (
	Expired      Reason = "expired"
	TooOld       Reason = "age"
	TooMany      Reason = "count" // in its line
	TooManyInAll Reason = "total"
	TooLarge     Reason = "size" // all together
)

// Why a snapshot is kept. The first that applies is given.
const (
	Pinned        Reason = "pinned"
	InUse         Reason = "in use"
	Undo          Reason = "undo"
	UnfinishedRun Reason = "unfinished run"
	Newest        Reason = "newest"
	ByHand        Reason = "manual"
	Named         Reason = "named"
	CleanupOff    Reason = "no auto-cleanup"
	WithinLimits  Reason = "within limits"
)

// Decision is what becomes of a snapshot.
type Decision struct {
	Removed bool
	Reason  Reason
	Detail  string // the reason in words
}

// Decide returns a decision for each snapshot. Snapshots are removed oldest first: those that have
// expired, those that are too old, and then as many as it takes to get below the limits on the
// number in a line, on the number in all, and on the space that they occupy.
//
// A snapshot that is pinned or in use always stays. Several others stay unless they have expired;
// see [Reason]. Snapshots that are pinned, named or taken by hand do not count, unless Options.All
// is set, which leaves pinned ones. All others count, also if they have to stay.
func Decide(s Situation) []Decision {
	d := newDeciding(s)
	d.each(func(i int) {
		if e := d.all[i].Expires; !e.IsZero() && !e.After(s.Now) {
			d.remove(i, Expired, "expired at "+e.UTC().Format(time.RFC3339))
		}
	})
	d.protect()
	if !s.Options.ExpiredOnly {
		d.limitAge()
		d.limitCounts()
		d.limitTotal()
		d.limitSize()
	}
	return d.decisions
}

// deciding is a decision under way.
type deciding struct {
	Situation
	all       []Snapshot
	order     []int // indices, oldest first
	counts    []bool
	stays     []bool // must not be removed
	decisions []Decision
}

func newDeciding(s Situation) *deciding {
	n := len(s.Snapshots)
	d := &deciding{Situation: s, all: s.Snapshots, order: make([]int, n), counts: make([]bool, n), stays: make([]bool, n), decisions: make([]Decision, n)}
	for i := range d.all {
		d.order[i] = i
		if one := &d.all[i]; one.Left || one.Pinned || one.InUse != "" {
			d.stays[i] = true
		}
	}
	slices.SortFunc(d.order, func(i, j int) int {
		a, b := &d.all[i], &d.all[j]
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(string(a.ID), string(b.ID)))
	})
	return d
}

// each visits the snapshots that are still there, oldest first.
func (d *deciding) each(visit func(i int)) {
	for _, i := range d.order {
		if !d.decisions[i].Removed {
			visit(i)
		}
	}
}

// remove removes a snapshot, unless it has to stay.
func (d *deciding) remove(i int, why Reason, detail string) {
	if !d.stays[i] {
		d.decisions[i] = Decision{Removed: true, Reason: why, Detail: detail}
	}
}

// protect finds out which snapshots must stay, and which count. It comes after the expired ones are
// gone, so that the newest of a container is one that is left.
func (d *deciding) protect() {
	newest := map[string]int{}
	d.each(func(i int) { newest[d.all[i].Container.Name] = i })
	d.each(func(i int) {
		one := &d.all[i]
		kept := d.whyKept(i, newest[one.Container.Name] == i)
		d.decisions[i] = kept
		d.stays[i] = kept.Reason != WithinLimits || one.Left
		d.counts[i] = !one.Left && !one.Pinned && !d.isExempt(one)
	})
}

// isExempt tells whether the limits are not about a snapshot.
func (d *deciding) isExempt(one *Snapshot) bool {
	return one.isByHand() && !d.Options.All || d.Options.Automatic && !d.policyOf(one).AutoCleanup
}

func (d *deciding) policyOf(one *Snapshot) Policy {
	if p, known := d.Lines[one.Line]; known {
		return p
	}
	return d.Options.InAll()
}

func (d *deciding) whyKept(i int, isNewest bool) Decision {
	one, o := &d.all[i], d.Options
	name := one.Container.Name
	switch {
	case one.Pinned:
		return Decision{Reason: Pinned, Detail: "it is pinned"}
	case one.InUse != "":
		return Decision{Reason: InUse, Detail: "in use by " + one.InUse}
	case one.UndoOf != "":
		return Decision{Reason: Undo, Detail: "it takes back the latest restore in place of " + one.UndoOf}
	case one.Trigger == labels.TriggerRunStart && one.RunID != "" && slices.Contains(d.UnfinishedRuns, one.RunID):
		return Decision{Reason: UnfinishedRun, Detail: "the start of run " + one.RunID + ", which has not ended"}
	case isNewest && (!o.All || !o.Force):
		return Decision{Reason: Newest, Detail: "the newest of " + name}
	case !o.All && one.nameKeeps():
		return Decision{Reason: Named, Detail: "it has a name"}
	case !o.All && one.Trigger == labels.TriggerManual:
		return Decision{Reason: ByHand, Detail: "it was taken by hand"}
	case d.isExempt(one):
		return Decision{Reason: CleanupOff, Detail: "automatic cleanup is off for " + name}
	case one.Left:
		return Decision{Reason: WithinLimits, Detail: "it was left out"}
	}
	return Decision{Reason: WithinLimits, Detail: "within the limits"}
}

// limitAge removes the units whose newest snapshot is too old.
func (d *deciding) limitAge() {
	for _, u := range d.units() {
		last := &d.all[u[len(u)-1]]
		if most := d.policyOf(last).MaxAge; most > 0 && d.Now.Sub(last.Created) > most {
			d.removeUnit(u, TooOld, "older than "+inWords(most))
		}
	}
}

// limitCounts removes the oldest units of each line.
func (d *deciding) limitCounts() {
	all, numbers := d.units(), map[tally]int{}
	for _, u := range all {
		numbers[d.all[u[0]].tally()]++
	}
	for _, u := range all {
		t := d.all[u[0]].tally()
		if most := t.most(d.policyOf(&d.all[u[0]])); most > 0 && numbers[t] > most && d.removeUnit(u, TooMany, fmt.Sprintf("beyond the limit of %d for %s", most, t)) {
			numbers[t]--
		}
	}
}

// limitTotal removes the oldest units of all lines together.
func (d *deciding) limitTotal() {
	all := slices.DeleteFunc(d.units(), func(u unit) bool { return !d.all[u[0]].isInTotal() })
	number, most := len(all), d.Options.InAll().MaxTotal
	for _, u := range all {
		if most > 0 && number > most && d.removeUnit(u, TooManyInAll, fmt.Sprintf("beyond the limit of %d in all", most)) {
			number--
		}
	}
}

// inWords writes a duration in days if it is whole days.
func inWords(age time.Duration) string {
	switch days := age / day; {
	case age%day != 0:
		return age.String()
	case days == 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", days)
	}
}
