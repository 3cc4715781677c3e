//go:build e2e

package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

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
	cells, ends := chooseCells(t)
	results := newTable()
	run := func(t *testing.T, c cell) {
		var reached bool
		defer func() { results.add(c, reached, !t.Failed()) }()
		_, reached = runCell(t, c)
	}
	t.Run("cells", func(t *testing.T) {
		for _, c := range cells {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				run(t, c)
			})
		}
	})
	for _, c := range ends { // no other cell could bear it
		t.Run(c.String(), func(t *testing.T) { run(t, c) })
	}
	t.Logf("seed %d\n%s", options.seed, results)
}

// chooseCells finds out how many requests each scenario makes, and chooses among the cells: those that may run side by side, and
// those that end the engine.
func chooseCells(t *testing.T) (cells, ends []cell) {
	t.Helper()
	if options.cell != "" && !strings.ContainsAny(options.cell, "*?[") {
		return split([]cell{parseCell(t, options.cell)})
	}
	all := allCells(t)
	if options.cell != "" {
		all = slices.DeleteFunc(all, func(c cell) bool {
			matches, err := path.Match(options.cell, c.String())
			assert.NilError(t, err)
			return !matches
		})
	}
	cells, ends = split(all)
	if options.all || options.cell != "" {
		return cells, ends
	}
	t.Logf("seed %d chooses of %d cells, and of %d that end the engine", options.seed, len(cells), len(ends))
	return draw(cells, options.cells), draw(ends, options.ends)
}

// allCells counts the requests of every scenario. The first run of all makes what the engine has once: the worker's image and the
// key. It makes more requests than any later one, so it does not count.
func allCells(t *testing.T) (all []cell) {
	t.Helper()
	t.Run("first", func(t *testing.T) { runCell(t, cell{scenario: scenarios[0], fault: faultNone}) })
	for _, s := range scenarios {
		var requests int
		if !t.Run("count/"+s.name, func(t *testing.T) { requests, _ = runCell(t, cell{scenario: s, fault: faultNone}) }) {
			continue
		}
		for _, f := range slices.Concat(allFaults, engineFaults) {
			for at := range requests {
				all = append(all, cell{s, f, at + 1})
			}
		}
	}
	return all
}

// split parts the cells that end the engine from the others.
func split(all []cell) (cells, ends []cell) {
	for _, c := range all {
		if c.fault.endsEngine() {
			ends = append(ends, c)
		} else {
			cells = append(cells, c)
		}
	}
	return cells, ends
}

// draw chooses so many cells, the same for the same seed: every scenario meets every fault once before any meets one again.
func draw(cells []cell, count int) []cell {
	random := rand.New(rand.NewPCG(options.seed, 0))
	random.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	met, turn := map[string]int{}, map[string]int{}
	for _, c := range cells {
		pair := c.scenario.name + "/" + string(c.fault)
		turn[c.String()] = met[pair]
		met[pair]++
	}
	slices.SortStableFunc(cells, func(a, b cell) int { return cmp.Compare(turn[a.String()], turn[b.String()]) })
	return cells[:min(count, len(cells))]
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
