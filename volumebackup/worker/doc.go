// Package worker is the process inside the worker container. It answers the requests of package protocol with the help
// of archive and store: each operation has a file with its handler, and a line in the list operations. It runs on Linux
// only; elsewhere Serve says so.
package worker

import "time"

// Options say where things are mounted in the container.
type Options struct {
	StoreRoot string // the store; /store if empty
	MountRoot string // volumes are mounted at <MountRoot>/<number>; /mnt if empty
	// CgroupRoot is the control groups of the engine's machine; /cgroup if empty.
	CgroupRoot string
	// WalkedRoot is the root filesystem of the container in whose PID namespace the worker is; if empty, that of the
	// namespace's first process.
	WalkedRoot string
	// Now is the clock that tells how long an archive has been without its image; time.Now if nil.
	Now func() time.Time
	// ProgressInterval is the time between two progress events; a tenth of a second if zero.
	ProgressInterval time.Duration
}
