// Package runs takes snapshots of a container around a command that works on it.
//
// A [Keeper] keeps the session of each run on the engine, where several clients may write to it: the
// one that runs, and each create within the run. A [Runner] follows one run. What it hears from the
// engine goes through a [follower], which is pure and decides when the next snapshot is due.
package runs
