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
	OpCreateAnonymous Op = "create anonymous volume" // its target is where it is mounted
	OpConnectNetwork  Op = "connect network"
	OpReplacePort     Op = "replace port"
	OpRenameContainer Op = "rename container"
	OpLeaveOut        Op = "leave out"
	OpStopContainer   Op = "stop container"
	OpRestoreVolume   Op = "restore volume"
	OpRemoveContainer Op = "remove container"
	OpCreateSnapshot  Op = "create snapshot"
	OpStartContainer  Op = "start container"
	OpPauseContainer  Op = "pause container"
)

// Step is one thing that a plan does.
type Step struct {
	Op     Op
	Target string
	Reason string
}

func (s Step) String() string {
	if s.Op == OpReplacePort {
		return ReplacedPort(s, "gets a free one")
	}
	if s.Reason == "" {
		return fmt.Sprintf("%s %s", s.Op, s.Target)
	}
	return fmt.Sprintf("%s %s (%s)", s.Op, s.Target, s.Reason)
}

// Plan is what an operation will do, in order. It is what --dry-run shows and
// what tests compare.
type Plan []Step

func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// PortFor is between the host's port and the container's in the target of a step.
const PortFor = " for "

// ReplacedPort says which port was replaced and why, and how the container's port
// is published now.
func ReplacedPort(s Step, now string) string {
	host, port, _ := strings.Cut(s.Target, PortFor)
	return fmt.Sprintf("port %s is %s: %s %s", host, s.Reason, port, now)
}

func (p Plan) Only(op Op) Plan {
	return slices.DeleteFunc(slices.Clone(p), func(s Step) bool { return s.Op != op })
}

// Notes are the steps of which the user has to know.
func (p Plan) Notes() Plan {
	return p.Only(OpLeaveOut)
}
