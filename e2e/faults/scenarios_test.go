//go:build e2e

package faults

import (
	"maps"
	"slices"
	"strings"

	"gotest.tools/v3/assert"
)

// scenario is a command, and what it needs.
type scenario struct {
	name    string
	prepare func(f *fixture)
	command []string // %s is the prefix
	removes []string // the names of snapshots that it removes, which may be gone also after a failure
	makes   []string // the names of the containers that it makes
	cost    int      // of a cell, about as a multiple of the cheapest: a sample has fewer of the costly ones
	// printed is what the command prints when it is done, empty if it is not: for a client that could not say so.
	printed func(f *fixture) string
	// done checks that an exit status of 0 is true.
	done func(f *fixture, o outcome)
}

// isCostly tells whether a sample should have few of its cells.
func (s scenario) isCostly() bool { return s.cost > 2 }

const idle = "sleep 10000"

var scenarios = []scenario{
	{
		name: "create-running",
		cost: 1,
		prepare: func(f *fixture) {
			f.fill("one", "first")
			f.fill("two", "first")
			f.start("db", idle, "one", "two")
			f.start("writer", countTwice, "two")
		},
		command: []string{"create", "%sdb", "new"},
		printed: (*fixture).newSnapshot,
		done:    (*fixture).created,
	},
	{
		name: "create-stopped",
		cost: 1,
		prepare: func(f *fixture) {
			f.fill("one", "first")
			f.fill("two", "first")
			f.start("db", idle, "one", "two")
			f.stop("db")
		},
		command: []string{"create", "%sdb", "new"},
		printed: (*fixture).newSnapshot,
		done:    (*fixture).created,
	},
	{
		name:    "copy",
		cost:    1,
		prepare: (*fixture).prepareRestore,
		command: []string{"restore", "--name", "%scopy", "%sdb:old"},
		makes:   []string{"copy"},
		printed: func(f *fixture) string { return f.running("copy") },
		done:    func(f *fixture, o outcome) { f.copied(o, "copy") },
	},
	{
		name:    "fork",
		cost:    2,
		prepare: (*fixture).prepareRestore,
		command: []string{"fork", "--count", "2", "--name", "%sfork", "%sdb:old"},
		makes:   []string{"fork-1", "fork-2"},
		printed: func(f *fixture) string { return f.running("fork-1", "fork-2") },
		done:    func(f *fixture, o outcome) { f.copied(o, "fork-1", "fork-2") },
	},
	{
		name:    "replace",
		cost:    2,
		prepare: (*fixture).prepareRestore,
		command: []string{"restore", "--replace", "--force", "--stop-others", "--settle", "200ms", "%sdb:old"},
		printed: (*fixture).replaced,
		done:    (*fixture).wentBack,
	},
	{
		name:    "only",
		cost:    2,
		prepare: (*fixture).prepareRestore,
		command: []string{"restore", "--replace", "--force", "--only", "/one", "--settle", "200ms", "%sdb:old"},
		printed: func(f *fixture) string {
			if maps.Equal(f.captured(), f.oneGoesBack()) {
				return f.containers["db"]
			}
			return ""
		},
		done: func(f *fixture, o outcome) {
			assert.Equal(f, o.stdout, f.containers["db"])
			f.checkStates()
			assert.DeepEqual(f, f.captured(), f.oneGoesBack())
		},
	},
	{
		name: "promote",
		cost: 4,
		prepare: func(f *fixture) {
			f.prepareRestore()
			f.containers["copy"] = f.succeed("restore", "--start", "--name", f.prefix+"copy", f.prefix+"db:old")
		},
		command: []string{"promote", "--force", "--stop-others", "--settle", "200ms", "%scopy"},
		printed: (*fixture).replaced,
		done: func(f *fixture, o outcome) {
			delete(f.states, "copy")
			f.wentBack(o)
		},
	},
	{
		name:    "group-create",
		cost:    4,
		prepare: (*fixture).prepareGroup,
		command: []string{"create", "--with", "%sweb", "--with", "%sjob", "%sdb"},
		printed: (*fixture).newGroup,
		done:    (*fixture).createdGroup,
	},
	{
		name:    "group-replace",
		cost:    4,
		prepare: (*fixture).prepareGroup,
		command: []string{"restore", "--replace", "--force", "--settle", "200ms", "%sdb:old", "%sweb:old", "%sjob:old"},
		printed: (*fixture).replaced,
		done:    (*fixture).wentBack,
	},
	{
		name:    "rm",
		cost:    2,
		prepare: (*fixture).prepareThree,
		command: []string{"rm", "%sdb:middle"},
		removes: []string{"middle"},
		printed: func(f *fixture) string { return f.gone("middle") },
		done:    func(f *fixture, _ outcome) { f.removed("middle") },
	},
	{
		name:    "prune",
		cost:    2,
		prepare: (*fixture).prepareThree,
		command: []string{"prune", "--all", "--force", "--keep-last", "1", "--filter", "container=%sdb"},
		removes: []string{"old", "middle"},
		printed: func(f *fixture) string { return f.gone("old", "middle") },
		done:    func(f *fixture, _ outcome) { f.removed("old", "middle") },
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

// prepareGroup takes a snapshot of three containers that share volumes, at one moment, and then changes the volumes.
func (f *fixture) prepareGroup() {
	f.subjects = []string{"db", "web", "job"}
	f.fill("one", "first")
	f.fill("two", "first")
	f.start("db", idle, "one", "two")
	f.start("web", idle, "two")
	f.start("job", idle, "one")
	ids := strings.Fields(f.succeed("create", "--with", f.prefix+"web", "--with", f.prefix+"job", f.prefix+"db", "old"))
	f.snapshots["old"] = ids[0]
	for _, id := range ids {
		f.contents[id] = f.captured()
	}
	f.fill("one", "second")
	f.fill("two", "second")
}

// prepareThree takes three snapshots of a stopped container.
func (f *fixture) prepareThree() {
	f.fill("one", "first")
	f.start("db", idle, "one")
	f.stop("db")
	f.create("old")
	f.fill("one", "second")
	f.create("middle")
	f.fill("one", "third")
	f.create("last")
}

// newSnapshot is the ID of the snapshot that is called new, or empty.
func (f *fixture) newSnapshot() string {
	f.Helper()
	return f.succeed("ls", "--quiet", "--filter", "name=^new$", f.prefix+"db")
}

// newGroup are the IDs of the snapshots that were made, one a line and of one container after the other. It is empty if one is
// missing.
func (f *fixture) newGroup() string {
	f.Helper()
	made := slices.DeleteFunc(f.listed(), func(id string) bool { return f.contents[id] != nil })
	if len(made) < len(f.subjects) {
		return ""
	}
	return strings.Join(made, "\n")
}

// createdGroup looks for the snapshots that were made, one of each container.
func (f *fixture) createdGroup(o outcome) {
	f.Helper()
	f.checkStates()
	made := strings.Fields(o.stdout)
	assert.Equal(f, len(made), len(f.subjects))
	var want []string
	for _, name := range f.subjects {
		want = append(want, f.prefix+name+" "+made[0])
	}
	assert.Equal(f, f.succeed(append([]string{"inspect", "--format", "{{.Container}} {{.Group}}"}, made...)...), strings.Join(want, "\n"))
}

// created looks for the snapshot that was made.
func (f *fixture) created(o outcome) {
	f.Helper()
	f.checkStates()
	assert.Assert(f, slices.Contains(f.listed(), o.stdout), "%q is not listed", o.stdout)
	named := f.succeed("inspect", "--format", "{{.ID}}", f.prefix+"db:new")
	assert.Equal(f, named, o.stdout)
}

// running are the IDs of these containers, one a line. It is empty if one of them does not run.
func (f *fixture) running(names ...string) string {
	var ids []string
	for _, name := range names {
		id, runs := strings.CutPrefix(f.state(name), "running ")
		if !runs {
			return ""
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, "\n")
}

// replaced are the IDs of the containers that have taken the places of the subjects, one a line. It is empty if one has not.
func (f *fixture) replaced() string {
	if f.isReplaced() {
		return f.running(f.subjects...)
	}
	return ""
}

// wentBack checks that others are in the places of the subjects, with what the snapshot old holds.
func (f *fixture) wentBack(o outcome) {
	f.Helper()
	ids := strings.Fields(o.stdout)
	assert.Equal(f, len(ids), len(f.subjects), "%s", o)
	for i, name := range f.subjects {
		f.states[name] = "running " + ids[i]
	}
	f.checkStates()
	assert.DeepEqual(f, f.captured(), f.contents[f.snapshots["old"]])
}

// copied checks the copies that a restore of old has made.
func (f *fixture) copied(o outcome, names ...string) {
	f.Helper()
	ids := strings.Fields(o.stdout)
	assert.Equal(f, len(ids), len(names), "%s", o)
	for i, name := range names {
		f.states[name] = "running " + ids[i]
	}
	f.checkStates()
	for _, id := range ids {
		found, err := docker.ContainerInspect(f.Context(), id)
		assert.NilError(f, err)
		assert.DeepEqual(f, f.contentOf(found), f.contents[f.snapshots["old"]])
	}
	assert.DeepEqual(f, f.captured(), f.before)
}

// oneGoesBack is what the volumes hold when only the first is what the snapshot old holds.
func (f *fixture) oneGoesBack() content {
	return content{"/one": f.contents[f.snapshots["old"]]["/one"], "/two": f.before["/two"]}
}

// gone are the IDs of these snapshots, one a line. It is empty if one of them is listed.
func (f *fixture) gone(names ...string) string {
	f.Helper()
	var ids []string
	listed := f.listed()
	for _, name := range names {
		if slices.Contains(listed, f.snapshots[name]) {
			return ""
		}
		ids = append(ids, f.snapshots[name])
	}
	return strings.Join(ids, "\n")
}

// removed checks that these snapshots are gone, and expects it from then on.
func (f *fixture) removed(names ...string) {
	f.Helper()
	f.checkStates()
	assert.Assert(f, f.gone(names...) != "", "some of %s are still listed", names)
	for _, name := range names {
		delete(f.contents, f.snapshots[name])
	}
}
