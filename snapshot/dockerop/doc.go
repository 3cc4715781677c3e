// Package dockerop calls the engine in ways that are safe to interrupt and to repeat. An answer may
// be lost, a context cancelled, a thing removed by somebody else: each call here says what it then
// leaves behind, which is nothing that its caller does not know of.
//
// What failed halfway is rolled back with [Rollback], on a context that survives Ctrl-C but ends.
//
// The package knows the Engine API and our labels' names. It knows no snapshots, stores or
// journals.
package dockerop
