// Package capture takes snapshots.
//
// It observes containers, reads their volumes while everything runs, freezes whoever can write
// to them, reads what changed since, commits the containers, thaws, and publishes. The snapshots
// are of one moment. Each exists from the moment its image has the ID tag; if anything fails
// before the last has it, none is left.
//
// It knows nothing of recovery. If a restore in place is pending, or something changed while it
// waited for the lock, it fails with [pending.ErrMoved]; if dead workers left containers frozen,
// with [LeftFrozenError]. The caller settles that and begins again.
package capture
