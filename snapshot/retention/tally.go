package retention

import "github.com/cua-snapshot/docker-snapshot/labels"

// tally is what the limit on a number counts together: the automatic snapshots of a line, or those that agents took of it.
type tally struct {
	line   string
	agents bool
}

func (one *Snapshot) tally() tally { return tally{one.Line, one.isAgents()} }

// IsLimited reports whether the limit on the number of a container's automatic snapshots applies to a snapshot of it.
func IsLimited(r labels.Record) bool {
	one := Snapshot{Record: r}
	return !one.isByHand() && !one.isAgents() && !r.Pinned
}

// isByHand reports whether a snapshot was taken, or named, by hand.
func (one *Snapshot) isByHand() bool { return one.Trigger == labels.TriggerManual || one.nameKeeps() }

// isAgents reports whether an agent took the snapshot.
func (one *Snapshot) isAgents() bool {
	return one.Trigger == labels.TriggerAgent && one.Kind != labels.KindState
}

// isInTotal reports whether the limit on the number of all snapshots applies. A line of states says itself how many it keeps.
func (one *Snapshot) isInTotal() bool { return !one.isAgents() && one.Kind != labels.KindState }

// nameKeeps reports whether the name of a snapshot keeps it. An agent names each of its own.
func (one *Snapshot) nameKeeps() bool { return one.Name != "" && !one.isAgents() }

func (t tally) most(p Policy) int {
	if t.agents {
		return p.MaxAgent
	}
	return p.MaxSnapshots
}

func (t tally) String() string {
	if t.agents {
		return "the agents of " + t.line
	}
	return t.line
}
