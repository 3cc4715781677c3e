package plan

import (
	"strings"

	cerrdefs "github.com/containerd/errdefs"
)

// ProblemKind is a reason why a restore cannot be done as asked. Package commands knows which flag
// helps against which kind.
type ProblemKind string

// The kinds of problems. All are found before anything is made.
const (
	ProblemNameTaken    ProblemKind = "name-taken"        // Subject: container name
	ProblemNoNetwork    ProblemKind = "no-network"        // Subject: network name
	ProblemTwoNetworks  ProblemKind = "two-networks"      // Subject: network name that several networks have
	ProblemNoProject    ProblemKind = "no-project"        // Subject: network of a Compose project that is down
	ProblemNoBindSource ProblemKind = "no-bind-source"    // Subject: path on the engine's host
	ProblemNoDevice     ProblemKind = "no-device"         // Subject: path on the engine's host
	ProblemNoRuntime    ProblemKind = "no-runtime"        // Subject: runtime name
	ProblemNoContainer  ProblemKind = "no-container"      // Subject: container whose namespace, link or volumes are asked for
	ProblemPeerGone     ProblemKind = "peer-gone"         // Subject: container that is to be kept, and cannot be started again
	ProblemNoVolume     ProblemKind = "no-volume"         // Subject: volume that is gone
	ProblemPortTaken    ProblemKind = "port-taken"        // Subject: host port
	ProblemVolumeInUse  ProblemKind = "volume-in-use"     // Subject: volume
	ProblemDependent    ProblemKind = "dependent"         // Subject: container that uses a namespace of this one
	ProblemNeedsRunning ProblemKind = "needs-running"     // Subject: container that uses a namespace of this one, which has to stop
	ProblemStopRemoves  ProblemKind = "stop-removes"      // Subject: container that is to be kept, and that the engine removes when it stops
	ProblemNotMounted   ProblemKind = "not-mounted"       // Subject: volume that alone is to go back, and that the container does not mount
	ProblemLostOneShot  ProblemKind = "lost-stop-removes" // as ProblemStopRemoves, of a snapshot that has lost its image
	ProblemLostUnused   ProblemKind = "lost-not-mounted"  // as ProblemNotMounted, of a snapshot that has lost its image
	ProblemLostNoTarget ProblemKind = "lost-no-original"  // as ProblemNoOriginal, of a snapshot that has lost its image
	ProblemNoOriginal   ProblemKind = "no-original"       // Subject: container that is to be kept, and that is gone
	ProblemAddressTaken ProblemKind = "address-taken"     // Subject: fixed address
	ProblemUnsaved      ProblemKind = "unsaved"           // Subject: volume that a safety snapshot would not hold
	ProblemWhiteout     ProblemKind = "whiteout"          // Subject: file that the commit of its container loses
	ProblemSwarmTask    ProblemKind = "swarm-task"        // Subject: container that Swarm starts and removes
	ProblemOneShot      ProblemKind = "one-shot"          // Subject: container that the engine removes when it stops
	ProblemOtherOneShot ProblemKind = "other-one-shot"    // Subject: container that would have to be stopped, and that the engine then removes
	ProblemArchive      ProblemKind = "archive"           // Subject: volume whose archive is damaged
	ProblemNoArchive    ProblemKind = "no-archive"        // Subject: volume whose archive the store does not hold
	ProblemNoSpace      ProblemKind = "no-space"          // Subject: volume that has no room for what it held
	ProblemNotHeld      ProblemKind = "not-held"          // Subject: volume that the user named and the snapshot does not hold
	ProblemRenamed      ProblemKind = "renamed"           // Subject: present name of the captured container
	ProblemDead         ProblemKind = "dead"              // Subject: container that the engine could not remove completely
	ProblemContents     ProblemKind = "contents"          // Subject: volume of which two snapshots that are restored together hold different contents
	ProblemCopyState    ProblemKind = "copy-state"        // Subject: copy that cannot stand still
	ProblemCopyMount    ProblemKind = "copy-mount"        // Subject: destination where a copy has a volume, and what it replaces has none
	ProblemRelative     ProblemKind = "relative-mount"    // Subject: relative path at which the container has a volume
	ProblemCopyPort     ProblemKind = "copy-port"         // Subject: copy that holds a port of what it replaces
	ProblemHostAccess   ProblemKind = "host-access"       // Subject: the access that is asked for
)

// Problem is one reason why a restore cannot be done as asked.
type Problem struct {
	Kind    ProblemKind
	Subject string
	Text    string // the whole message, for people
}

// ProblemsError holds all problems of a restore. Nothing was made yet.
type ProblemsError struct {
	Problems []Problem
	Promote  bool // a copy was to take a container's place
}

func (e *ProblemsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Text
	}
	return e.Undone() + ":\n  " + strings.Join(lines, "\n  ")
}

// Undone says what cannot be done.
func (e *ProblemsError) Undone() string {
	if e.Promote {
		return "cannot promote"
	}
	return "cannot restore"
}

// Unwrap gives the error its class.
func (e *ProblemsError) Unwrap() error { return cerrdefs.ErrFailedPrecondition }
