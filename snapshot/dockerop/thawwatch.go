package dockerop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// ThawWatch listens to which containers are paused, thawed and started. Inspecting them instead
// would miss a thaw that is followed by another pause.
type ThawWatch struct {
	messages <-chan eventtypes.Message
	failed   <-chan error
	stop     context.CancelFunc
}

// WatchThaws begins to listen. The caller must call Stop of what it returns.
func (e *Engine) WatchThaws(ctx context.Context) *ThawWatch {
	ctx, stop := context.WithCancel(ctx)
	args := filters.NewArgs(filters.Arg("type", string(eventtypes.ContainerEventType)))
	for _, action := range []eventtypes.Action{eventtypes.ActionPause, eventtypes.ActionUnPause, eventtypes.ActionStart, eventtypes.ActionCommit} {
		args.Add("event", string(action))
	}
	messages, failed := e.Events(ctx, eventtypes.ListOptions{Filters: args})
	return &ThawWatch{messages: messages, failed: failed, stop: stop}
}

// Stop ends the listening.
func (w *ThawWatch) Stop() { w.stop() }

// ContainerEvents are the IDs of the containers that were paused, and of those that were thawed or
// started.
type ContainerEvents struct{ Paused, Ran []string }

// commitEventTimeout bounds the wait for the event of a commit. The engine sends it before it
// answers the commit.
const commitEventTimeout = 10 * time.Second

// UntilCommit returns what happened between [Engine.WatchThaws] and the end of the last of the
// commits with these comments. An engine sends events in the order in which things happen.
func (w *ThawWatch) UntilCommit(ctx context.Context, comments ...string) (ContainerEvents, error) {
	limit := time.NewTimer(commitEventTimeout)
	defer limit.Stop()
	var h ContainerEvents
	done := map[string]bool{}
	isOver := func() bool {
		return !slices.ContainsFunc(comments, func(comment string) bool { return !done[comment] })
	}
	for {
		select {
		case m := <-w.messages:
			switch m.Action {
			case eventtypes.ActionPause:
				h.Paused = append(h.Paused, m.Actor.ID)
			case eventtypes.ActionUnPause, eventtypes.ActionStart:
				h.Ran = append(h.Ran, m.Actor.ID)
			case eventtypes.ActionCommit:
				if done[m.Actor.Attributes["comment"]] = true; isOver() {
					return h, nil
				}
			}
		case err := <-w.failed:
			return h, fmt.Errorf("watch for containers that somebody thaws: %w", err)
		case <-ctx.Done():
			return h, context.Cause(ctx)
		case <-limit.C:
			return h, errors.New("watch for containers that somebody thaws: the engine sent no event for the commit")
		}
	}
}
