package watch

// What is reported while containers are watched.
type What string

// All that is reported.
const (
	Started  What = "started"  // from now on containers are watched
	Watching What = "watching" // a container is watched now
	Gone     What = "gone"     // a container is not watched any more: it was removed
	Took     What = "snapshot" // one was taken
	Removed  What = "removed"  // a snapshot was removed: it had expired, or was beyond a limit
	Failed   What = "failed"   // a snapshot could not be taken; it may be tried again
	Warning  What = "warning"  // something that somebody has to know
	Away     What = "away"     // the engine cannot be reached; it is tried again and again
	Back     What = "back"     // the engine can be reached again
	Stopped  What = "stopped"  // nothing is watched any more
)

// Report is one thing that happened while containers were watched. What does not apply is empty.
type Report struct {
	What        What
	Container   string // its name
	ContainerID string
	Snapshot    string // its ID
	Trigger     string
	Reason      string
	FrozenMS    int64
	Incomplete  bool // something that should be in the snapshot is not
	Error       string
}

// Tell takes reports. Several goroutines may call it.
type Tell func(Report)
