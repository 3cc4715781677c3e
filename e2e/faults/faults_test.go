//go:build e2e

package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"gotest.tools/v3/assert"
)

// cell is one fault at one request of one scenario.
type cell struct {
	scenario scenario
	fault    fault
	at       int
}

func (c cell) String() string { return fmt.Sprintf("%s/%s/%d", c.scenario.name, c.fault, c.at) }

// TestFaults runs each scenario without a fault, and then the cells that the options choose.
func TestFaults(t *testing.T) {
	cells := chooseCells(t)
	held := newTable()
	t.Run("cells", func(t *testing.T) {
		for _, c := range cells {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				defer func() { held.add(c, !t.Failed()) }()
				runCell(t, c)
			})
		}
	})
	t.Logf("seed %d\n%s", options.seed, held)
}

// chooseCells finds out how many requests each scenario makes, and chooses among them.
func chooseCells(t *testing.T) []cell {
	t.Helper()
	if options.cell != "" && !strings.Contains(options.cell, "*") {
		return []cell{parseCell(t, options.cell)}
	}
	var cells []cell
	for _, s := range scenarios {
		var requests int
		if !t.Run("count/"+s.name, func(t *testing.T) { requests = runCell(t, cell{scenario: s, fault: faultNone}) }) {
			continue
		}
		for _, f := range allFaults {
			for at := range requests {
				cells = append(cells, cell{s, f, at + 1})
			}
		}
	}
	t.Logf("seed %d chooses of %d cells", options.seed, len(cells))
	if options.cell != "" {
		return slices.DeleteFunc(cells, func(c cell) bool {
			matches, err := path.Match(options.cell, c.String())
			assert.NilError(t, err)
			return !matches
		})
	}
	if options.all {
		return cells
	}
	random := rand.New(rand.NewPCG(options.seed, 0))
	random.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	return cells[:min(options.cells, len(cells))]
}

func parseCell(t *testing.T, name string) cell {
	t.Helper()
	parts := strings.Split(name, "/")
	assert.Equal(t, len(parts), 3, "-cell is SCENARIO/FAULT/REQUEST")
	at, err := strconv.Atoi(parts[2])
	assert.NilError(t, err)
	for _, s := range scenarios {
		if s.name == parts[0] {
			return cell{s, fault(parts[1]), at}
		}
	}
	t.Fatalf("there is no scenario %s", parts[0])
	return cell{}
}

// table counts cells by scenario and fault.
type table struct {
	mu        sync.Mutex
	run, held map[[2]string]int
}

func newTable() *table { return &table{run: map[[2]string]int{}, held: map[[2]string]int{}} }

func (b *table) add(c cell, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := [2]string{c.scenario.name, string(c.fault)}
	b.run[key]++
	if held {
		b.held[key]++
	}
}

// String shows how many cells held, and how many ran.
func (b *table) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "scenario")
	for _, f := range allFaults {
		fmt.Fprintf(w, "\t%s", f)
	}
	for _, s := range scenarios {
		fmt.Fprintf(w, "\n%s", s.name)
		for _, f := range allFaults {
			key := [2]string{s.name, string(f)}
			fmt.Fprintf(w, "\t%d of %d", b.held[key], b.run[key])
		}
	}
	fmt.Fprintf(w, "\nall: %d of %d\n", sum(b.held), sum(b.run))
	w.Flush()
	return text.String()
}

func sum(counts map[[2]string]int) (total int) {
	for count := range maps.Values(counts) {
		total += count
	}
	return total
}
