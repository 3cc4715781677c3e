// Package copies restores snapshots as new containers. The original is not touched. Everything is
// checked before anything is made, and what was made is removed if the restore fails.
//
// A client may be killed at any time. So everything that a restore makes bears the name of its
// operation, or is named by the label of the worker that fills it, and the next restore removes
// what belongs to no finished copy.
package copies
