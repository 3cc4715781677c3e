package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Op is what a [Step] does.
type Op string

// The operations of plans.
const (
	OpCreateContainer Op = "create container"
	OpCreateVolume    Op = "create volume"
	OpCreateAnonymous Op = "create anonymous volume" // the target is where it is mounted
	OpConnectNetwork  Op = "connect network"
	OpReplacePort     Op = "replace port"
	OpRenameContainer Op = "rename container"
	OpLeaveOut        Op = "leave out"
	OpStopContainer   Op = "stop container"
	OpRestoreVolume   Op = "restore volume"
	OpRestoreBind     Op = "restore bind mount" // the target is the directory of the host
	OpRemoveContainer Op = "remove container"
	OpCreateSnapshot  Op = "create snapshot"
	OpStartContainer  Op = "start container"
	OpPauseContainer  Op = "pause container"
	OpFreezeContainer Op = "freeze container"
	OpThawContainer   Op = "thaw container"
)

// Step is one thing that a plan does.
type Step struct {
	Op     Op
	Target string
	Reason string
}

// String returns the step as people read it.
func (s Step) String() string {
	if s.Op == OpReplacePort {
		return ReplacedPort(s, "gets a free one")
	}
	if s.Reason == "" {
		return fmt.Sprintf("%s %s", s.Op, s.Target)
	}
	return fmt.Sprintf("%s %s (%s)", s.Op, s.Target, s.Reason)
}

// Plan is what an operation will do, in order. A dry run shows it, and tests compare it.
type Plan []Step

// String returns the steps, one a line.
func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// PortFor separates the host's port from the container's in the target of an [OpReplacePort] step.
const PortFor = " for "

// ReplacedPort says which port was replaced and why; now says how the container's port is published
// instead.
func ReplacedPort(s Step, now string) string {
	host, port, _ := strings.Cut(s.Target, PortFor)
	return fmt.Sprintf("port %s is %s: %s %s", host, s.Reason, port, now)
}

// Only returns the steps with that operation.
func (p Plan) Only(op Op) Plan {
	return slices.DeleteFunc(slices.Clone(p), func(s Step) bool { return s.Op != op })
}

// Notes returns the steps that the user has to know of.
func (p Plan) Notes() Plan {
	return p.Only(OpLeaveOut)
}
