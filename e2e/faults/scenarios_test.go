//go:build e2e

package faults

import (
	"slices"

	"gotest.tools/v3/assert"
)

// scenario is a command, and what it needs.
type scenario struct {
	name    string
	prepare func(f *fixture)
	command []string // %s is the prefix
	removes string   // the name of a snapshot that may be gone also after a failure
	// done checks that an exit status of 0 is true.
	done func(f *fixture, o outcome)
}

const idle = "sleep 10000"

var scenarios = []scenario{
	{
		name: "create-running",
		prepare: func(f *fixture) {
			f.fill("one", "first")
			f.fill("two", "first")
			f.start("db", idle, "one", "two")
			f.start("writer", countTwice, "two")
		},
		command: []string{"create", "%sdb", "new"},
		done:    (*fixture).created,
	},
	{
		name: "create-stopped",
		prepare: func(f *fixture) {
			f.fill("one", "first")
			f.fill("two", "first")
			f.start("db", idle, "one", "two")
			f.stop("db")
		},
		command: []string{"create", "%sdb", "new"},
		done:    (*fixture).created,
	},
	{
		name:    "copy",
		prepare: (*fixture).prepareRestore,
		command: []string{"restore", "--name", "%scopy", "%sdb:old"},
		done: func(f *fixture, o outcome) {
			f.states["copy"] = "running " + o.stdout
			f.checkStates()
			found, err := docker.ContainerInspect(f.Context(), o.stdout)
			assert.NilError(f, err)
			assert.Equal(f, f.contentOf(found), f.contents[f.snapshots["old"]])
			assert.Equal(f, f.captured(), f.before)
		},
	},
	{
		name:    "replace",
		prepare: (*fixture).prepareRestore,
		command: []string{"restore", "--replace", "--force", "--stop-others", "--settle", "200ms", "%sdb:old"},
		done: func(f *fixture, o outcome) {
			f.states["db"] = "running " + o.stdout
			f.checkStates()
			assert.Equal(f, f.captured(), f.contents[f.snapshots["old"]])
		},
	},
	{
		name: "rm",
		prepare: func(f *fixture) {
			f.fill("one", "first")
			f.start("db", idle, "one")
			f.stop("db")
			f.create("old")
			f.fill("one", "second")
			f.create("middle")
			f.fill("one", "third")
			f.create("last")
		},
		command: []string{"rm", "%sdb:middle"},
		removes: "middle",
		done: func(f *fixture, o outcome) {
			f.checkStates()
			assert.Assert(f, !slices.Contains(f.listed(), o.stdout), "%s is still listed", o.stdout)
			delete(f.contents, o.stdout)
		},
	},
}

// prepareRestore takes a snapshot of a container with a sharer, and then changes the volumes.
func (f *fixture) prepareRestore() {
	f.fill("one", "first")
	f.fill("two", "first")
	f.startOn("bridge", "db", idle, "one", "two")
	f.create("old")
	f.start("sharer", idle, "two")
	f.fill("one", "second")
	f.fill("two", "second")
}

// created looks for the snapshot that was made.
func (f *fixture) created(o outcome) {
	f.checkStates()
	assert.Assert(f, slices.Contains(f.listed(), o.stdout), "%q is not listed", o.stdout)
	named := f.succeed("inspect", "--format", "{{.ID}}", f.prefix+"db:new")
	assert.Equal(f, named, o.stdout)
}
