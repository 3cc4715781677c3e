package runs

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// at is so many milliseconds after noon.
func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

func isDue(f *follower, ms int) bool {
	take, _ := f.due(at(ms))
	return take
}

func TestASnapshotIsDueAfterAnAction(t *testing.T) {
	f := newFollower()
	assert.Assert(t, !isDue(f, 0))
	f.began("a", at(0))
	assert.Assert(t, !isDue(f, 5000), "it has not ended")
	f.ended("a", at(6000))
	take, wait := f.due(at(6400))
	assert.Assert(t, !take && wait == 100*time.Millisecond, "the next command may follow at once: %v", wait)
	assert.Assert(t, isDue(f, 6500))
	f.begin()
	assert.Assert(t, !isDue(f, 7000))
	f.taken()
	assert.Assert(t, !isDue(f, 8000))
	assert.Assert(t, f.idle())
}

// What ends while a snapshot is being taken is in the next one, however much it is.
func TestActionsShareASnapshot(t *testing.T) {
	f := newFollower()
	f.began("a", at(0))
	f.ended("a", at(1))
	f.begin()
	for _, exec := range []string{"b", "c", "d"} {
		f.began(exec, at(10))
		f.ended(exec, at(20))
	}
	assert.Assert(t, !isDue(f, 1000), "one is being taken")
	f.taken()
	assert.Assert(t, isDue(f, 1000))
	f.begin()
	f.taken()
	assert.Assert(t, !isDue(f, 2000))
}

// An engine refuses to start a command in a frozen container, so a burst is let pass; but not for ever.
func TestABurstIsLetPass(t *testing.T) {
	f := newFollower()
	taken := 0
	for ms := 0; ms < 20_000; ms += 100 {
		f.began("a", at(ms))
		f.ended("a", at(ms+50))
		if isDue(f, ms+60) {
			taken++
			assert.Assert(t, ms >= 15_000)
			f.begin()
			f.taken()
		}
	}
	assert.Equal(t, taken, 1)
}

func TestAnEndWithoutABeginningIsNoAction(t *testing.T) {
	f := newFollower()
	f.ended("healthcheck", at(0))
	assert.Assert(t, !isDue(f, 5000))
	assert.Assert(t, f.idle())
}

func TestNoSnapshotStartsDuringARestore(t *testing.T) {
	f := newFollower()
	f.began("a", at(0))
	f.ended("a", at(1))
	f.restoreBegan("worker", session.Restore{Snapshot: "20260314-092653-58979a"})
	assert.Assert(t, !isDue(f, 60_000))
	_, ok := f.restoreEnded("another")
	assert.Assert(t, !ok)
	r, ok := f.restoreEnded("worker")
	assert.Assert(t, ok && r.Snapshot == "20260314-092653-58979a")
	assert.Assert(t, isDue(f, 60_000))
}

func TestAtTheEndNothingIsWaitedFor(t *testing.T) {
	f := newFollower()
	f.began("a", at(0))
	f.began("hangs", at(0))
	f.ended("a", at(1))
	f.ending = true
	assert.Assert(t, isDue(f, 2))
	f.begin()
	f.taken()
	assert.Assert(t, !f.idle())
	f.forgetActions()
	assert.Assert(t, f.idle())
}

func TestOwnCommands(t *testing.T) {
	health := func(test ...string) *container.Config {
		return &container.Config{Healthcheck: &container.HealthConfig{Test: test}}
	}
	assert.DeepEqual(t, ownCommands(health("CMD-SHELL", "curl -f localhost || exit 1")), []string{"/bin/sh -c curl -f localhost || exit 1"})
	assert.DeepEqual(t, ownCommands(health("CMD", "/bin/check", "-v")), []string{"/bin/check -v"})
	assert.Assert(t, ownCommands(health("NONE")) == nil)
	hooked := &container.Config{Labels: map[string]string{"cua.snapshot.policy.pre": "redis-cli save", "cua.snapshot.policy.post": `["redis-cli", "ping"]`}}
	assert.DeepEqual(t, ownCommands(hooked), []string{"sh -c redis-cli save cua-snapshot-hook", "redis-cli ping"})
	w := &following{hooks: map[string][]string{"worker": volumebackup.HooksOf(map[string]string{"cua.snapshot.worker.hooks": `["touch /list"]`})}}
	assert.Assert(t, w.isHook("sh -c other cua-snapshot-hook") && !w.isHook("sh -c other"))
	assert.Assert(t, w.isHook("touch /list") && !w.isHook("touch /other"))
	assert.Assert(t, volumebackup.HooksOf(map[string]string{"cua.snapshot.worker.hooks": "nonsense"}) == nil)
	assert.Assert(t, ownCommands(nil) == nil)
	shell := health("CMD-SHELL", "ok")
	shell.Shell = []string{"/bin/bash", "-ec"}
	assert.DeepEqual(t, ownCommands(shell), []string{"/bin/bash -ec ok"})
	command, ok := execCommand("exec_start: /bin/sh -c ok ")
	assert.Assert(t, ok)
	assert.Equal(t, command, "/bin/sh -c ok")
	_, ok = execCommand("exec_die")
	assert.Assert(t, !ok)
}
