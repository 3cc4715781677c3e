package retention

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

var now = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// read makes snapshots of lines like "web 3h run_start name=x run=r expired pinned undo left used":
// the container, the age, and the rest in any order.
func read(t *testing.T, text string) []Snapshot {
	t.Helper()
	var all []Snapshot
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		words := strings.Fields(line)
		age, err := labels.ParseDuration(words[1])
		assert.NilError(t, err)
		s := Snapshot{Line: words[0], Record: labels.Record{Trigger: labels.TriggerInterval, Created: now.Add(-age)}}
		s.Container.Name = words[0]
		s.ID = labels.ID(fmt.Sprintf("%s-%06d", labels.IDTime(s.Created), len(all)))
		for _, word := range words[2:] {
			readWord(&s, word)
		}
		all = append(all, s)
	}
	return all
}

func readWord(s *Snapshot, word string) {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "name":
		s.Name = value
	case "run":
		s.RunID = value
	case "state":
		s.Kind = labels.KindState
	case "expired":
		s.Expires = now.Add(-time.Second)
	case "later":
		s.Expires = now.Add(time.Second)
	case "pinned":
		s.Pinned = true
	case "used":
		s.InUse = "container " + s.Container.Name
	case "undo":
		s.UndoOf = s.Container.Name
	case "left":
		s.Left = true
	default:
		s.Trigger = labels.Trigger(word)
	}
}

// write says for each snapshot whether it is removed, and why.
func write(decisions []Decision) string {
	var lines []string
	for _, d := range decisions {
		sign := "+"
		if d.Removed {
			sign = "-"
		}
		lines = append(lines, sign+" "+string(d.Reason))
	}
	return strings.Join(lines, "\n")
}

func trimLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		snapshots, want string
		policy          Policy
		lines           map[string]Policy
		options         Options
		sets            []Set
	}{
		"nothing is limited": {
			snapshots: "web 1h\nweb 1000d", want: "+ newest\n+ within limits",
		},
		"expired ones go, whatever they are": {
			snapshots: "web 1h manual name=x expired\nweb 2h expired undo\nweb 3h run_start run=r expired\nweb 4h later\nweb 5h pinned expired\nweb 6h used expired",
			want:      "- expired\n- expired\n- expired\n+ newest\n+ pinned\n+ in use",
		},
		"only expired ones go": {
			snapshots: "web 1h\nweb 2h expired\nweb 3h", options: Options{ExpiredOnly: true}, policy: Policy{MaxSnapshots: 1, MaxAge: time.Hour},
			want: "+ newest\n- expired\n+ within limits",
		},
		"old ones go, but the newest": {
			snapshots: "web 8d\nweb 9d\ndb 8d manual\ndb 9d manual\ndb 10d name=x", policy: Policy{MaxAge: 7 * day},
			want: "+ newest\n- age\n+ newest\n+ manual\n+ named",
		},
		"the count is of each container, oldest first": {
			snapshots: "web 1h\nweb 2h\nweb 3h\nweb 4h\ndb 5h\ndb 6h", policy: Policy{MaxSnapshots: 2},
			want: "+ newest\n+ within limits\n- count\n- count\n+ newest\n+ within limits",
		},
		"manual, named and pinned ones do not count": {
			snapshots: "web 1h manual\nweb 2h name=x\nweb 3h pinned\nweb 4h\nweb 5h\nweb 6h", policy: Policy{MaxSnapshots: 2},
			want: "+ newest\n+ named\n+ pinned\n+ within limits\n+ within limits\n- count",
		},
		"a run that has ended counts as one, and goes as a whole": {
			snapshots: "web 1h run_end run=over\nweb 2h run_start run=over\nweb 3h\nweb 4h run_end run=old\nweb 5h run_start run=old\nweb 6h run=old manual\nweb 7h run_end run=r\nweb 8h run=r",
			policy:    Policy{MaxSnapshots: 2},
			want:      "+ newest\n+ within limits\n+ within limits\n- count\n- count\n+ manual\n- count\n- count",
		},
		"a run that cannot go as a whole stays": {
			snapshots: "web 1h\nweb 2h\nweb 3h run=old used\nweb 4h run=old\nweb 5h", policy: Policy{MaxSnapshots: 1, MaxAge: 90 * time.Minute},
			want: "+ newest\n- age\n+ in use\n+ within limits\n- age",
		},
		"a run is as old as its end": {
			snapshots: "web 1h\nweb 2h run=old\nweb 9h run=old\nweb 8h run=over\nweb 3h run=r", policy: Policy{MaxAge: 150 * time.Minute},
			want: "+ newest\n+ within limits\n+ within limits\n- age\n- age",
		},
		"size: a run goes as a whole": {
			snapshots: "web 1h\nweb 2h\nweb 3h run=old\nweb 4h\nweb 5h run=old", policy: Policy{MaxSize: 25},
			sets: []Set{{NoRest, 0, 10}, {NoRest, 1, 10}, {NoRest, 2, 3}, {NoRest, 3, 10}, {NoRest, 4, 3}},
			want: "+ newest\n+ within limits\n- size\n- size\n- size",
		},
		"states count neither in all nor for the size": {
			snapshots: "web 1h\nmodes 2h state\nmodes 3h state\nmodes 4h state\nweb 5h\nweb 6h", policy: Policy{MaxTotal: 2, MaxSize: 15},
			sets: []Set{{NoRest, 0, 10}, {NoRest, 1, 1000}, {NoRest, 2, 1000}, {NoRest, 4, 10}, {NoRest, 5, 10}},
			want: "+ newest\n+ newest\n+ within limits\n+ within limits\n- size\n- total",
		},
		"those of agents have a limit of their own, named or not": {
			snapshots: "web 1h\nweb 2h\nweb 3h\nweb 4h agent name=x\nweb 5h agent name=y\nweb 6h agent\nweb 7h agent pinned", policy: Policy{MaxSnapshots: 2, MaxAgent: 1, MaxTotal: 3},
			want: "+ newest\n+ within limits\n- count\n+ within limits\n- count\n- count\n+ pinned",
		},
		"those of agents do not count in all": {
			snapshots: "web 1h agent\nweb 2h\nweb 3h agent\nweb 4h", policy: Policy{MaxTotal: 1},
			want: "+ newest\n+ within limits\n+ within limits\n- total",
		},
		"all count, but pinned ones": {
			snapshots: "web 1h manual\nweb 2h name=x\nweb 3h pinned\nweb 4h\nweb 5h manual", policy: Policy{MaxSnapshots: 2}, options: Options{All: true},
			want: "+ newest\n+ within limits\n+ pinned\n- count\n- count",
		},
		"those that have to stay count": {
			snapshots: "web 1h\nweb 2h\nweb 3h\nweb 4h undo\nweb 5h run_start run=r\nweb 6h run_start run=over\nweb 7h used",
			policy:    Policy{MaxSnapshots: 4},
			want:      "+ newest\n- count\n- count\n+ undo\n+ unfinished run\n- count\n+ in use",
		},
		"the limits are applied in order": {
			snapshots: "web 1h\nweb 2h\nweb 3h\ndb 4h\ndb 5h\ndb 9d", policy: Policy{MaxAge: 7 * day, MaxSnapshots: 2, MaxTotal: 3},
			want: "+ newest\n+ within limits\n- count\n+ newest\n- total\n- age",
		},
		"the newest goes only with all and force": {
			snapshots: "web 8d\ndb 9d manual", policy: Policy{MaxAge: 7 * day}, options: Options{All: true, Force: true},
			want: "- age\n- age",
		},
		"a line has a policy of its own": {
			snapshots: "web 1h\nweb 2h\nweb 3h\ndb 1h\ndb 2h\ndb 3h", policy: Policy{MaxSnapshots: 2}, lines: map[string]Policy{"db": {MaxAge: 150 * time.Minute}},
			want: "+ newest\n+ within limits\n- count\n+ newest\n+ within limits\n- age",
		},
		"cleanup is off for one": {
			snapshots: "web 1h\nweb 2h\ndb 1h\ndb 2h\ndb 3h expired", policy: Policy{MaxSnapshots: 1, AutoCleanup: true}, options: Options{Automatic: true},
			lines: map[string]Policy{"db": {MaxSnapshots: 1}},
			want:  "+ newest\n- count\n+ newest\n+ no auto-cleanup\n- expired",
		},
		"what is left out is not counted": {
			snapshots: "web 1h left\nweb 2h\nweb 3h\nweb 4h left expired", policy: Policy{MaxSnapshots: 1},
			want: "+ newest\n+ within limits\n- count\n+ within limits",
		},
		"size: the oldest go until it fits": {
			snapshots: "web 1h\nweb 2h\nweb 3h\nweb 4h", policy: Policy{MaxSize: 25},
			sets: []Set{{NoRest, 0, 10}, {NoRest, 1, 10}, {NoRest, 2, 10}, {NoRest, 3, 10}},
			want: "+ newest\n+ within limits\n- size\n- size",
		},
		"size: what several share counts once, and goes with the last": {
			snapshots: "web 1h\nweb 2h\nweb 3h", policy: Policy{MaxSize: 100},
			sets: []Set{{NoRest, 0, 1}, {NoRest, 2, 0}, {1, 1, 90}, {NoRest, 2, 20}},
			want: "+ newest\n+ within limits\n- size",
		},
		"size: what a manual one holds, too, does not count": {
			snapshots: "web 1h\nweb 2h\nweb 3h manual", policy: Policy{MaxSize: 10},
			sets: []Set{{NoRest, 2, 1000}, {0, 1, 1000}, {NoRest, Stranger, 7}, {2, 0, 70}, {NoRest, 0, 5}, {NoRest, 1, 5}},
			want: "+ newest\n+ within limits\n+ manual",
		},
		"size: what went for another reason does not count": {
			snapshots: "web 1h\nweb 2h\nweb 9d", policy: Policy{MaxSize: 10, MaxAge: 7 * day},
			sets: []Set{{NoRest, 2, 1000}, {NoRest, 0, 5}, {NoRest, 1, 5}},
			want: "+ newest\n+ within limits\n- age",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.Policy = tc.policy
			got := Decide(Situation{Snapshots: read(t, tc.snapshots), Sets: tc.sets, Lines: tc.lines, UnfinishedRuns: []string{"r"}, EndedRuns: []string{"over", "old"}, Options: tc.options, Now: now})
			assert.Equal(t, write(got), trimLines(tc.want))
		})
	}
}

func TestDecisionsSayWhyInWords(t *testing.T) {
	zero := 1
	got := Decide(Situation{
		Snapshots: read(t, "web 1h\nweb 2h\nweb 9d\nweb 10d pinned\nweb 3h expired\ndb 5h undo\ndb 4h used\ndb 3h run_start run=r"),
		Options:   Options{Policy: Policy{MaxAge: 7 * day}, Limits: Limits{KeepLast: &zero}}, UnfinishedRuns: []string{"r"}, Now: now,
	})
	var details []string
	for _, d := range got {
		details = append(details, d.Detail)
	}
	assert.DeepEqual(t, details, []string{
		"the newest of web", "beyond the limit of 1 for web", "older than 7 days", "it is pinned", "expired at 2026-03-14T11:59:59Z",
		"it takes back the latest restore in place of db", "in use by container db", "the start of run r, which has not ended",
	})
}

// random makes a situation with everything in it.
func random(r *rand.Rand) Situation {
	triggers := []labels.Trigger{labels.TriggerManual, labels.TriggerInterval, labels.TriggerRunStart, labels.TriggerPreRestore}
	s := Situation{Now: now, Lines: map[string]Policy{}}
	chance := func(one int) bool { return r.IntN(one) == 0 }
	for i := range r.IntN(30) {
		one := Snapshot{Line: "line" + strconv.Itoa(r.IntN(3))}
		one.ID, one.Container.Name = labels.ID(strconv.Itoa(i)), one.Line
		one.Trigger = triggers[r.IntN(len(triggers))]
		one.Created = now.Add(-time.Duration(r.IntN(20)) * 12 * time.Hour)
		one.Pinned, one.RunID, one.Left = chance(6), "r"+strconv.Itoa(r.IntN(3)), chance(6)
		if chance(6) {
			one.Expires = now.Add(time.Duration(r.IntN(3)-1) * time.Hour)
		}
		if chance(6) {
			one.InUse = "somebody"
		}
		if chance(6) {
			one.UndoOf = "somebody"
		}
		if chance(4) {
			one.Name = "name"
		}
		s.Snapshots = append(s.Snapshots, one)
	}
	for i := range r.IntN(60) {
		s.Sets = append(s.Sets, Set{Rest: r.IntN(i+1) - 1, Snapshot: r.IntN(len(s.Snapshots)+1) - 1, Bytes: int64(r.IntN(100))})
	}
	policy := func() Policy {
		return Policy{MaxSnapshots: r.IntN(5), MaxTotal: r.IntN(9), MaxSize: int64(r.IntN(1000)), MaxAge: time.Duration(r.IntN(8)) * day, AutoCleanup: chance(2)}
	}
	s.Lines["line0"] = policy()
	s.Options = Options{Policy: policy(), All: chance(2), Force: chance(2), Automatic: chance(3), ExpiredOnly: chance(6)}
	s.UnfinishedRuns, s.EndedRuns = []string{"r1"}, []string{"r2"}
	return s
}

// without leaves out what was removed.
func without(s Situation, decisions []Decision) Situation {
	rest, places := s, map[int]int{}
	rest.Snapshots = nil
	for i, one := range s.Snapshots {
		if !decisions[i].Removed {
			places[i] = len(rest.Snapshots)
			rest.Snapshots = append(rest.Snapshots, one)
		}
	}
	gone := len(rest.Snapshots)
	rest.Sets = nil
	for _, set := range s.Sets {
		place, is := places[set.Snapshot]
		switch {
		case is:
			set.Snapshot = place
		case set.Snapshot != Stranger:
			set.Snapshot = gone // a place for all that are gone
		}
		rest.Sets = append(rest.Sets, set)
	}
	return rest
}

func TestWhateverTheSituationTheDecisionsHold(t *testing.T) {
	for seed := range uint64(3000) {
		s := random(rand.New(rand.NewPCG(seed, 1)))
		decisions := Decide(s)
		assert.Equal(t, len(decisions), len(s.Snapshots))
		checkDecisions(t, seed, s, decisions)
		rest := without(s, decisions)
		if len(rest.Snapshots) < len(s.Snapshots) { // its sets end with the last holder: drop what only the gone held
			rest.Sets = freeGone(rest)
		}
		for i, again := range Decide(rest) {
			assert.Assert(t, !again.Removed, "seed %d: a second time removes %+v: %+v", seed, rest.Snapshots[i], again)
		}
	}
}

// freeGone writes the sets anew without the snapshots that are gone.
func freeGone(s Situation) []Set {
	gone := len(s.Snapshots)
	sets := make([]Set, 0, len(s.Sets))
	for _, set := range s.Sets {
		if set.Snapshot != gone {
			sets = append(sets, set)
			continue
		}
		if set.Rest == NoRest { // empty now: nobody holds it
			sets = append(sets, Set{Rest: NoRest, Snapshot: Stranger})
			continue
		}
		same := sets[set.Rest]
		same.Bytes = set.Bytes
		if isEmpty(sets, set.Rest) {
			same.Bytes = 0
		}
		sets = append(sets, same)
	}
	return sets
}

func isEmpty(sets []Set, at int) bool {
	return sets[at].Rest == NoRest && sets[at].Snapshot == Stranger && sets[at].Bytes == 0
}

func checkDecisions(t *testing.T, seed uint64, s Situation, decisions []Decision) {
	t.Helper()
	newest := map[string]time.Time{}
	for i, one := range s.Snapshots {
		if !decisions[i].Removed && newest[one.Line].Before(one.Created) {
			newest[one.Line] = one.Created
		}
	}
	for i, one := range s.Snapshots {
		d := decisions[i]
		assert.Assert(t, d.Reason != "" && d.Detail != "", "seed %d: %+v has no reason", seed, one)
		if !d.Removed {
			continue
		}
		assert.Assert(t, !one.Pinned && one.InUse == "" && !one.Left, "seed %d: %+v is removed: %+v", seed, one, d)
		if d.Reason == Expired {
			assert.Assert(t, !one.Expires.After(s.Now) && !one.Expires.IsZero())
			continue
		}
		assert.Assert(t, !s.Options.ExpiredOnly)
		assert.Assert(t, one.UndoOf == "" && (one.Trigger != labels.TriggerRunStart || one.RunID != "r1"), "seed %d: %+v is removed", seed, one)
		assert.Assert(t, s.Options.All || one.Name == "" && one.Trigger != labels.TriggerManual, "seed %d: %+v is removed", seed, one)
		assert.Assert(t, s.Options.All && s.Options.Force || !newest[one.Line].Before(one.Created), "seed %d: the newest of %s is removed", seed, one.Line)
	}
}

func TestFreedCountsWhatNobodyHoldsAnyMore(t *testing.T) {
	sets := []Set{{NoRest, 0, 1}, {0, 1, 10}, {1, 2, 100}, {NoRest, Stranger, 1000}, {3, 0, 10000}}
	assert.Equal(t, Freed(sets, []bool{true, false, false}), int64(1))
	assert.Equal(t, Freed(sets, []bool{true, true, false}), int64(11))
	assert.Equal(t, Freed(sets, []bool{true, true, true}), int64(111))
	assert.Equal(t, Freed(sets, []bool{false, true, true}), int64(0))
}
