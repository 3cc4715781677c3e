package catalog

import (
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// WarnWhiteouts warns of files that the snapshot lost when it was taken.
func (s Snapshot) WarnWhiteouts(p plan.Progress) {
	if len(s.Whiteouts) == 0 {
		return
	}
	text := fmt.Sprintf("snapshot %s is incomplete: %s", s.ID, dockerop.DescribeWhiteout(s.Whiteouts[0]))
	if more := len(s.Whiteouts) - 1; more > 0 {
		text += fmt.Sprintf(". The same applies to %d more files", more)
	}
	p.Warn("check", text)
}
