package runs

import (
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// quiet is how long no action may have begun or ended before a snapshot is taken. Engines refuse to
// start a command in a container that is frozen, so a snapshot waits for a gap between commands that
// follow each other closely. After restless it waits no longer.
const (
	quiet    = 500 * time.Millisecond
	restless = 15 * time.Second
)

// follower decides when the next snapshot after an action is due. It is pure: whoever has one tells it
// what happens, and when.
type follower struct {
	actions   map[string]bool            // execs under way
	pending   time.Time                  // when the first action ended that no snapshot has been begun after; zero: none
	last      time.Time                  // when an action began or ended
	taking    bool                       // a snapshot
	restoring map[string]session.Restore // restores in place that are under way, by their worker
	ending    bool                       // the command has ended: no other actions come
}

func newFollower() *follower {
	return &follower{actions: map[string]bool{}, restoring: map[string]session.Restore{}}
}

// began hears that an action has begun.
func (f *follower) began(exec string, at time.Time) {
	f.actions[exec] = true
	f.last = at
}

// ended hears that an exec has ended. Only one whose beginning was heard is an action.
func (f *follower) ended(exec string, at time.Time) {
	if !f.actions[exec] {
		return
	}
	delete(f.actions, exec)
	f.last = at
	if f.pending.IsZero() {
		f.pending = at
	}
}

// restoreBegan hears that the container is being restored in place: no snapshot may start.
func (f *follower) restoreBegan(worker string, r session.Restore) { f.restoring[worker] = r }

// restoreEnded hears that a worker has ended. It returns false if it restored nothing here.
func (f *follower) restoreEnded(worker string) (r session.Restore, ok bool) {
	r, ok = f.restoring[worker]
	delete(f.restoring, worker)
	return r, ok
}

// due tells whether a snapshot is to be taken now or, if one will be due, how long that takes.
func (f *follower) due(now time.Time) (take bool, wait time.Duration) {
	if f.pending.IsZero() || f.taking || len(f.restoring) > 0 {
		return false, 0
	}
	if f.ending {
		return true, 0
	}
	wait = min(f.last.Add(quiet).Sub(now), f.pending.Add(restless).Sub(now))
	return wait <= 0, max(wait, 0)
}

// begin says that a snapshot is being taken, which is after all actions that have ended.
func (f *follower) begin() { f.taking, f.pending = true, time.Time{} }

// taken hears that it was taken, or failed.
func (f *follower) taken() { f.taking = false }

// idle tells whether nothing is left to do after the command has ended. An action that is still under
// way is waited for, because its end follows within moments.
func (f *follower) idle() bool {
	return !f.taking && f.pending.IsZero() && len(f.restoring) == 0 && len(f.actions) == 0
}

// forgetActions gives up on actions that have not ended.
func (f *follower) forgetActions() { clear(f.actions) }

// forgetRestores gives up on restores whose end was not heard.
func (f *follower) forgetRestores() { clear(f.restoring) }
