package retention

import "github.com/cua-snapshot/docker-snapshot/labels"

// tally is what the limit on a number counts together: the automatic snapshots of a line, or those that agents took of it.
type tally struct {
	line   string
	agents bool
}

func (one *Snapshot) tally() tally { return tally{one.Line, one.isAgents()} }

// isAgents reports whether an agent took the snapshot.
func (one *Snapshot) isAgents() bool {
	return one.Trigger == labels.TriggerAgent && one.Kind != labels.KindState
}

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
