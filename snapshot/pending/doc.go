// Package pending finds the workers on an engine and what they are doing: which containers they
// freeze, and the journals of restores that are under way or were interrupted. It tells operations
// on the same containers or volumes apart from others, and thaws what a dead worker has left
// frozen.
//
// A worker's container and its labels are the only record. They are written before the operation
// that they describe changes anything, so an operation that is not listed has changed nothing.
// Everything read from them is checked, because whoever recovers does what they say.
//
// The package rolls nothing back: package replace does.
package pending
