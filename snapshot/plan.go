package snapshot

import (
	"fmt"
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
		return replacedPort(s, "gets a free one")
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
