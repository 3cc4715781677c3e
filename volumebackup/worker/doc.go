// Package worker is the process inside the worker container: what protocol
// asks for, archive and store do. It runs on Linux only; elsewhere Serve says so.
package worker

import "time"

// Options say where things are mounted in the container.
type Options struct {
	StoreRoot string // the store; /store if empty
	MountRoot string // volumes are mounted at <MountRoot>/<number>; /mnt if empty
	// Now is the clock that tells how old an orphan is; time.Now if nil.
	Now func() time.Time
	// ProgressInterval is how often progress is told; ten times a second if zero.
	ProgressInterval time.Duration
}
