//go:build e2e

package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// table counts cells by scenario and fault.
type table struct {
	mu       sync.Mutex
	cells    map[[2]string]tally
	notBegun int
}

// tally counts cells. Those whose request was never made, or which found nothing to end, count only as missed.
type tally struct{ run, held, missed int }

func newTable() *table { return &table{cells: map[[2]string]tally{}} }

func (b *table) add(c cell, reached, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := [2]string{c.scenario.name, string(c.fault)}
	count := b.cells[key]
	switch {
	case !held:
		count.run++
	case !reached:
		count.missed++
	default:
		count.run++
		count.held++
	}
	b.cells[key] = count
}

// leaveOut counts a cell for which there was no time.
func (b *table) leaveOut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notBegun++
}

// String shows for each scenario and fault how many cells held, how many ran, and how many were not reached.
func (b *table) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "scenario")
	faults := slices.Concat(allFaults, engineFaults)
	for _, f := range faults {
		fmt.Fprintf(w, "\t%s", f)
	}
	var all tally
	for _, s := range scenarios {
		fmt.Fprintf(w, "\n%s", s.name)
		for _, f := range faults {
			count := b.cells[[2]string{s.name, string(f)}]
			fmt.Fprintf(w, "\t%s", count)
			all = tally{all.run + count.run, all.held + count.held, all.missed + count.missed}
		}
	}
	w.Flush()
	fmt.Fprintf(&text, "\nheld: %d of %d; not reached: %d; not begun: %d\n", all.held, all.run, all.missed, b.notBegun)
	return text.String()
}

// String shows 4/5+1: of five cells four held, and one more was not reached.
func (c tally) String() string {
	switch {
	case c == tally{}:
		return "-"
	case c.missed > 0:
		return fmt.Sprintf("%d/%d+%d", c.held, c.run, c.missed)
	}
	return fmt.Sprintf("%d/%d", c.held, c.run)
}
