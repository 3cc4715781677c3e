//go:build e2e

package faults

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"gotest.tools/v3/assert"
)

// cell is one fault at one request of one scenario.
type cell struct {
	scenario scenario
	fault    fault
	at       int
}

func (c cell) String() string { return fmt.Sprintf("%s/%s/%d", c.scenario.name, c.fault, c.at) }

// lot decides how early a cell is drawn. It is the cell's own: one request more or less in a scenario leaves the other cells alone.
func (c cell) lot() []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", options.seed, c))
	return sum[:]
}

// TestFaults runs each scenario without a fault, and then the cells that the options choose.
func TestFaults(t *testing.T) {
	began := time.Now()
	cells, ends := chooseCells(t)
	results := newTable()
	run := func(t *testing.T, c cell) {
		if limit := beginWithin(c); limit > 0 && time.Since(began) > limit {
			results.leaveOut()
			t.Skipf("it would begin later than the %s that -within allows", limit)
		}
		var reached bool
		defer func() { results.add(c, reached, !t.Failed()) }()
		_, reached = runCell(t, c)
	}
	t.Run("cells", func(t *testing.T) { abreast(t, cells, run) })
	for _, c := range ends { // no other cell could bear it
		t.Run(c.String(), func(t *testing.T) { run(t, c) })
	}
	checkNoSnapshots(t)
	t.Logf("seed %d\n%s", options.seed, results)
}

// abreast runs cells in this order, as many at once as the testing package would run parallel tests; it would begin any of them.
func abreast(t *testing.T, cells []cell, run func(*testing.T, cell)) {
	t.Helper()
	atOnce, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	assert.NilError(t, err)
	var runs errgroup.Group
	runs.SetLimit(atOnce)
	for _, c := range cells {
		runs.Go(func() error {
			t.Run(c.String(), func(t *testing.T) { run(t, c) })
			return nil
		})
	}
	_ = runs.Wait() // each has its own test to fail
}

// beginWithin is how long after the start a cell may begin; 0: at any time. Those that end the engine come last: without a time of
// their own, none of them would begin on a machine that is too slow for all.
func beginWithin(c cell) time.Duration {
	if c.fault.endsEngine() {
		return options.within + options.within/10
	}
	return options.within
}

// chooseCells finds out how many requests each scenario makes, and chooses among the cells: those that may run side by side, and
// those that end the engine.
func chooseCells(t *testing.T) (cells, ends []cell) {
	t.Helper()
	if options.cell != "" && !strings.ContainsAny(options.cell, "*?[") {
		return split([]cell{parseCell(t, options.cell)})
	}
	pattern := cmp.Or(options.cell, "*/*/*")
	scenario, _, _ := strings.Cut(pattern, "/")
	all := slices.DeleteFunc(allCells(t, scenario), func(c cell) bool { return !matches(t, pattern, c.String()) })
	cells, ends = split(all)
	if options.all || options.cell != "" {
		return cells, ends
	}
	t.Logf("seed %d chooses of %d cells, and of %d that end the engine", options.seed, len(cells), len(ends))
	return draw(cells, options.cells), draw(ends, options.ends)
}

func matches(t *testing.T, pattern, name string) bool {
	t.Helper()
	matched, err := path.Match(pattern, name)
	assert.NilError(t, err)
	return matched
}

// allCells are the cells of those scenarios whose names match a pattern. The first run of all makes what the engine has once: the
// worker's image and the key. It makes more requests than any later one, so it does not count.
func allCells(t *testing.T, pattern string) (all []cell) {
	t.Helper()
	t.Run("first", func(t *testing.T) { runCell(t, cell{scenario: scenarios[0], fault: faultNone}) })
	requests := countRequests(t, pattern)
	for _, s := range scenarios {
		for _, f := range slices.Concat(allFaults, engineFaults) {
			for at := range requests[s.name] {
				all = append(all, cell{s, f, at + 1})
			}
		}
	}
	return all
}

// countRequests runs each of those scenarios without a fault, the costliest first, and returns how many requests it makes, by its
// name. One that fails is missing.
func countRequests(t *testing.T, pattern string) map[string]int {
	t.Helper()
	var plain []cell
	for _, s := range scenarios {
		if matches(t, pattern, s.name) {
			plain = append(plain, cell{scenario: s, fault: faultNone})
		}
	}
	slices.SortStableFunc(plain, func(a, b cell) int { return cmp.Compare(b.scenario.cost, a.scenario.cost) })
	requests, mu := map[string]int{}, sync.Mutex{}
	t.Run("count", func(t *testing.T) {
		abreast(t, plain, func(t *testing.T, c cell) {
			count, _ := runCell(t, c)
			mu.Lock()
			defer mu.Unlock()
			requests[c.scenario.name] = count
		})
	})
	return requests
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

// draw chooses so many cells, the same for the same seed: every scenario meets every fault once before any meets one again, and the
// cheaper it is the sooner it does. A costly one meets only one fault of each kind.
func draw(cells []cell, count int) []cell {
	slices.SortFunc(cells, func(a, b cell) int { return bytes.Compare(a.lot(), b.lot()) })
	met, turn := map[[2]string]int{}, map[string]int{}
	for _, c := range cells {
		pair := [2]string{c.scenario.name, string(c.fault)}
		if c.scenario.isCostly() {
			pair[1] = c.fault.kind()
		}
		turn[c.String()] = met[pair] * c.scenario.cost
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
