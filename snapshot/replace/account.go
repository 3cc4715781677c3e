package replace

import (
	"context"
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
)

// dataState says what the volumes hold while a restore in place is rolled back.
type dataState string

const (
	dataSafe  dataState = "hold what they held"
	dataMixed dataState = "may hold a mixture of what they held and of what was being restored"
)

// UndoError means that a restore in place failed, and that rolling it back failed, too.
// Nothing was deleted, and the journal stays: [Replacer.Recover] tries again.
type UndoError struct {
	Container string // its name, for Recover
	State     string // what state everything is in, for people
	Err       error
}

func (e *UndoError) Error() string {
	return fmt.Sprintf("container %s could not be put back: %v\n%s", e.Container, e.Err, e.State)
}

// PendingError is returned by a dry run if a restore in place of the same container, or of
// one that shares a volume, is under way or was interrupted. What the dry run would find
// may change any moment then. [Replacer.Settle] waits for that restore, or rolls it back.
type PendingError struct {
	Container string // name of the one that is restored
}

func (e *PendingError) Error() string {
	return fmt.Sprintf("a restore in place of container %s is under way or was interrupted", e.Container)
}

// InUseError means that an interrupted restore in place cannot be rolled back, because another
// container has begun to use one of its volumes since.
type InUseError struct {
	Volume    string
	User      string // name of the container that uses it
	Container string // name of the one that was being restored
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by container %s", labels.DescribeKey(e.Volume), e.User)
}

// NotStartedError means that a restore in place is over, done or rolled back, but that a
// container which was stopped for it did not start again. The journal stays:
// [Replacer.Recover] tries again.
type NotStartedError struct {
	Container string // name of the one that was restored, for Recover
	Err       error
}

func (e *NotStartedError) Error() string { return e.Err.Error() }

// Unwrap returns why the containers could not be started.
func (e *NotStartedError) Unwrap() error { return e.Err }

// Unwrap returns what stood in the way.
func (e *UndoError) Unwrap() error { return e.Err }

// account tells a user what there is after a failed rollback. It asks the engine now.
func (b *rollback) account(ctx context.Context) string {
	lines := []string{"Nothing was deleted. What there is now:"}
	say := func(format string, args ...any) { lines = append(lines, "  - "+fmt.Sprintf(format, args...)) }
	for _, m := range b.journal.Members {
		if m.Old != "" {
			say("the container itself (%s) %s", m.Old[:dockerop.ShortID], b.engine.situation(ctx, m.Old))
		}
		made, err := b.engine.findMade(ctx, b.journal, m.Name, m.Snapshot)
		if err == nil && made != nil {
			say("the new container (%s) %s", made.ID[:dockerop.ShortID], describeState(*made))
		}
	}
	if volumes := b.journal.Written(); len(volumes) > 0 {
		say("its volumes %s: %s", b.data, strings.Join(volumes, ", "))
	}
	for _, o := range b.journal.Others {
		say("container %s, which shares them, %s", o.Name, b.engine.situation(ctx, o.ID))
	}
	for _, m := range b.journal.Members {
		say("%s", b.engine.accountOfSafety(ctx, m))
	}
	return strings.Join(lines, "\n")
}

// accountOfSafety says whether there is a snapshot of what there was before.
func (rp *Replacer) accountOfSafety(ctx context.Context, m pending.Member) string {
	safety, err := rp.findSafety(ctx, m)
	switch {
	case err != nil:
		return fmt.Sprintf("snapshot %s should hold what there was before, but the engine cannot show it: %v", m.Safety, err)
	case safety != nil:
		return fmt.Sprintf("snapshot %s holds what there was before", m.Safety)
	}
	return "there is no snapshot of what there was before"
}

// situation tells the name and the state that a container has now.
func (rp *Replacer) situation(ctx context.Context, id string) string {
	c, err := rp.docker.InspectIfThere(ctx, id)
	switch {
	case err != nil:
		return fmt.Sprintf("is unknown, because the engine does not show it: %v", err)
	case c == nil:
		return "is gone"
	}
	return describeState(*c)
}

func describeState(c container.InspectResponse) string {
	return fmt.Sprintf("is named %s and is %s", dockerop.ContainerName(c), stateOf(c))
}

func stateOf(c container.InspectResponse) string {
	switch {
	case c.State.Dead:
		return "dead"
	case !c.State.Running && !c.State.Restarting:
		return "stopped"
	}
	return string(dockerop.ContainerState(c.State))
}
