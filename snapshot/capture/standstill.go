package capture

import (
	"fmt"
	"time"
)

// standstill is how long containers stood still for a snapshot.
type standstill struct {
	total   time.Duration
	reading time.Duration // of it, until the volumes were read; the engine's commits are the rest
}

// add adds one freeze. read is when its last pass ended; a time before the freeze means that it never ended.
func (s *standstill) add(f *frozen, read time.Time) {
	s.total += f.lasted
	if f.lasted == 0 {
		return
	}
	if read.Before(f.since) {
		s.reading += f.lasted
		return
	}
	s.reading += min(f.lasted, read.Sub(f.since))
}

// longStandstill is how long containers may stand still without a warning.
const longStandstill = 2 * time.Second

// warnStood warns about a long standstill. It says why it was long and what shortens it.
func (a *taking) warnStood() {
	if a.stood.total <= longStandstill {
		return
	}
	const precision = 100 * time.Millisecond
	which := "container " + a.parts[0].record.Container.Name
	if len(a.parts) > 1 {
		which = "the containers"
	}
	commit := a.stood.total - a.stood.reading
	why := fmt.Sprintf("the engine took %v to commit the root filesystem, which it reads as a whole. "+
		"Keep data that grows in a volume: of a volume only recent changes are read while the container stands still", commit.Round(precision))
	if commit < a.stood.reading {
		why = fmt.Sprintf("it took %v to read what was written to the volumes since the first pass. "+
			"Take snapshots while less is written, or leave out caches and logs", a.stood.reading.Round(precision))
	}
	a.p.Warn("freeze", fmt.Sprintf("%s stood still for %v: %s", which, a.stood.total.Round(precision), why))
}
