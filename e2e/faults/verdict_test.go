//go:build e2e

package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// patience is how long another process may take. A worker that was never started counts as new for 10 s.
const patience = time.Minute

// The times between two looks at what another process does, and between two recovers: one leaves to other clients what these clear
// up at that moment, and keeps the machine busy for a second.
const (
	lookPause   = 100 * time.Millisecond
	repairPause = 5 * time.Second
)

// runCell makes a fixture, runs the command with its fault, and checks that everything holds. It returns the number of
// requests, and whether the fault happened: a command may make fewer requests than when they were counted.
func runCell(t *testing.T, c cell) (requests int, reached bool) {
	t.Helper()
	f := newFixture(t)
	if c.fault.endsEngine() {
		f.policy = container.RestartPolicyAlways // else they would not run again
	}
	c.scenario.prepare(f)
	f.observeStates()
	var args []string
	for _, arg := range c.scenario.command {
		args = append(args, strings.ReplaceAll(arg, "%s", f.prefix))
	}
	p, address := startProxy(t, socket, c)
	p.strike = func() bool { return f.strike(c.fault, p) }
	o := f.run(address, args...)
	p.disarm()
	p.pending.Wait()
	requests, hit := p.seen()
	defer func() {
		if t.Failed() {
			t.Logf("%s of %q\n%s: %s", c.fault, hit, args, o)
		}
	}()
	f.judge(c, args, o)
	return requests, hit != ""
}

// judge checks that what a command has left agrees with what it said, and that it can be run again.
func (f *fixture) judge(c cell, args []string, o outcome) {
	f.Helper()
	s := c.scenario
	switch {
	case o.isDone() && !c.fault.endsEngine():
		s.done(f, o)
	case !c.fault.isSudden():
		f.checkStates()
	case c.fault == faultKill: // the guard does it, and ends
		f.await(lookPause, func() bool { return len(f.clients(true)) == 0 && (f.hasStates() || f.isReplaced()) })
		assert.Assert(f, f.isReplaced() || f.hasStates(), "not even the guard has put it right: %s", f.running("db"))
	}
	if !o.isDone() || c.fault.isSudden() || f.left(c) != "" {
		f.repair(c)
	}
	if !o.isDone() && c.fault.isSudden() {
		o.stdout = s.printed(f)
	}
	if o.isDone() || c.fault.isSudden() && o.stdout != "" {
		s.done(f, o)
		f.checkSnapshots()
		if c.fault == faultNone && !s.isCostly() {
			f.checkWithPlugin()
		}
		return
	}
	f.checkStates()
	assert.DeepEqual(f, f.captured(), f.before)
	defer f.checkSnapshots() // also what the failed command has left: nothing mends a snapshot
	if f.forgetRemoved(s) {
		return
	}
	if len(s.removes) > 0 {
		f.checkSnapshots() // the next run removes them
	}
	if again := f.runPlain(args...); again.isDone() {
		s.done(f, again)
	} else {
		f.Errorf("run again, it fails: %s", again)
	}
}

// forgetRemoved no longer expects those snapshots that the failed command has removed although it did not come to its end. It
// tells whether these are all that it was to remove.
func (f *fixture) forgetRemoved(s scenario) (all bool) {
	f.Helper()
	if len(s.removes) == 0 {
		return false
	}
	listed := f.listed()
	all = true
	for _, name := range s.removes {
		if id := f.snapshots[name]; slices.Contains(listed, id) {
			all = false
		} else {
			delete(f.contents, id)
		}
	}
	return all
}

// hasStates tells whether every container is in its old state.
func (f *fixture) hasStates() bool {
	for name, state := range f.states {
		if f.state(name) != state {
			return false
		}
	}
	return true
}

// isReplaced tells whether under the name of each subject another container runs than the one that was there.
func (f *fixture) isReplaced() bool {
	return !slices.ContainsFunc(f.subjects, func(name string) bool {
		id := f.running(name)
		return id == "" || id == f.containers[name]
	})
}

// checkStates waits until every container is in its old state.
func (f *fixture) checkStates() {
	f.Helper()
	f.await(lookPause, f.hasStates)
	now := map[string]string{}
	for name := range f.states {
		now[name] = f.state(name)
	}
	assert.DeepEqual(f, now, f.states)
}

// await repeats a check until it holds, or for as long as our patience lasts.
func (f *fixture) await(pause time.Duration, holds func() bool) bool {
	f.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// repair runs docker snapshot recover until nothing is left over.
func (f *fixture) repair(c cell) {
	f.Helper()
	var o outcome
	var left string
	if !f.await(repairPause, func() bool {
		o = f.runPlain("recover", f.prefix+"db")
		left = f.left(c)
		return o.status == 0 && left == ""
	}) {
		f.Errorf("this is left over: %s\nrecover: %s", left, o)
	}
}

// listed are the IDs of the snapshots that ls shows. It is asked again after another command.
func (f *fixture) listed() []string {
	f.Helper()
	if f.listing == nil {
		ids := []string{}
		for _, name := range f.subjects {
			ids = append(ids, strings.Fields(f.succeed("ls", "--quiet", f.prefix+name))...)
		}
		f.listing = ids
	}
	return slices.Clone(f.listing)
}

// checkSnapshots verifies all listed snapshots. Those that the cell began with must be there. For these that is enough: the record
// that they agree with is a part of their image's ID. What the command has made is also restored, and compared.
func (f *fixture) checkSnapshots() {
	f.Helper()
	listed := f.listed()
	for id := range f.contents {
		assert.Assert(f, slices.Contains(listed, id), "snapshot %s is gone", id)
	}
	if len(listed) == 0 {
		return
	}
	records := f.records(listed)
	f.verify(records)
	for _, r := range records {
		if _, isOld := f.contents[string(r.ID)]; !isOld {
			f.checkSnapshot(r, f.contentOfNew(r))
		}
	}
}

// checkWithPlugin checks the snapshots once more, with the plugin: so it is known to say the same as what checks the other cells.
func (f *fixture) checkWithPlugin() {
	f.Helper()
	listed := f.listed()
	f.succeed(append([]string{"verify"}, listed...)...)
	for _, r := range f.records(listed) {
		if _, isOld := f.contents[string(r.ID)]; isOld {
			continue
		}
		made, err := docker.ContainerInspect(f.Context(), f.succeed("restore", "--no-start", "--name", f.prefix+"check-"+string(r.ID), string(r.ID)))
		assert.NilError(f, err)
		got := f.contentOf(made)
		assert.Assert(f, len(got) > 0)
		assert.DeepEqual(f, got, f.contentOfNew(r).within(got))
		for _, m := range made.Mounts {
			f.checkCounts(m.Source)
		}
	}
}

// contentOfNew is what a snapshot must hold that the command has taken: what there was before it, or, if it is of the copy that
// was promoted, what the snapshot old holds.
func (f *fixture) contentOfNew(r labels.Record) content {
	if f.containers["copy"] != "" && r.Trigger != labels.TriggerPreRestore {
		return f.contents[f.snapshots["old"]]
	}
	return f.before
}
