package volumebackup

import "slices"

// rights are what a worker may do, besides reading what is mounted for it.
type rights struct {
	noStore       bool // none is mounted
	freezes       bool // the processes of containers, past the engine
	walks         bool // the root filesystem of a container that runs
	makesStore    bool // if there is none
	writesStore   bool
	readsVolumes  bool
	writesVolumes bool
	makesDevices  bool // device nodes in volumes
	setsTrusted   bool // trusted.* xattrs in volumes
}

// isIdle tells whether a worker with a name only lives: it locks or holds something, and the store needs nothing of it when it ends.
func (j job) isIdle() bool {
	r := j.rights
	r.makesStore = false
	return j.name != "" && (r == toHold || r == toLock)
}

// keepsStore tells whether the store is mounted read-only.
func (r rights) keepsStore() bool { return !r.writesStore }

// The rights of workers.
var (
	// toHold is for keeping the engine from removing volumes.
	toHold = rights{noStore: true}
	// toFreeze is for freezing and thawing the processes of a container whose engine is stuck.
	toFreeze = rights{noStore: true, freezes: true}
	// toWalk is for reading the root filesystem of a container that runs.
	toWalk = rights{noStore: true, walks: true}
	// toLook is for reading the store.
	toLook = rights{}
	// toTidy is for removing things from the store.
	toTidy = rights{writesStore: true}
	// toLock is for keeping volumes, and for recording the journal in the store.
	toLock = rights{writesStore: true}
	// toCompare is for finding out what restoring a volume would do.
	toCompare = rights{readsVolumes: true}
	// toCapture is for archiving volumes.
	toCapture = rights{readsVolumes: true, writesStore: true, makesStore: true}
	// toReplace is for volumes that are captured first and then restored. Nobody knows what is in them, so it can
	// make everything again when it rolls back.
	toReplace = rights{readsVolumes: true, writesVolumes: true, makesDevices: true, setsTrusted: true, writesStore: true}
)

// toFill is for new volumes: the snapshot says what comes into them. The worker also writes a head to the store;
// without it the next snapshot would store everything once more. It can write nothing else there, see worker.ServeConfined.
func toFill(devices, trusted bool) rights {
	return rights{readsVolumes: true, writesVolumes: true, makesDevices: devices, setsTrusted: trusted, writesStore: true}
}

// capabilities are those that the rights need. Usually the worker's user owns the store, but a user may have made the
// store from a folder of somebody else.
func (j job) capabilities() []string {
	if j.rights.walks {
		return []string{
			"DAC_READ_SEARCH", // what others own
			"SYS_PTRACE",      // the root of another process
		}
	}
	needed := []string{"DAC_OVERRIDE"} // reading and writing what others own
	if j.rights.readsVolumes {
		needed = append(needed,
			"DAC_READ_SEARCH", // directories that only their owner may search
			"FOWNER",          // modes, times and xattrs of what others own, and reading without a trace
		)
	}
	if j.rights.readsVolumes && j.rights.writesStore {
		needed = append(needed, "LEASE") // asking whether anybody writes to what others own, to note it in the store
	}
	if j.rights.writesVolumes {
		needed = append(needed,
			"CHOWN",   // owners
			"FSETID",  // setuid and setgid bits
			"SETFCAP", // file capabilities
		)
	}
	if j.rights.makesDevices {
		needed = append(needed, "MKNOD")
	}
	// Without it the kernel hides trusted.* xattrs from the worker.
	fillsOnly := j.rights.writesVolumes && !j.rights.setsTrusted
	if j.rights.readsVolumes && !fillsOnly {
		needed = append(needed, "SYS_ADMIN")
	}
	slices.Sort(needed)
	return needed
}
