package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// thawWatch hears from the engine who was paused, thawed and started. A look at the
// states would miss a thaw that is followed by another pause.
type thawWatch struct {
	messages <-chan eventtypes.Message
	failed   <-chan error
	stop     context.CancelFunc
}

// watchThaws begins to listen. The caller must stop what it returns.
func (e *Engine) watchThaws(ctx context.Context) *thawWatch {
	ctx, stop := context.WithCancel(ctx)
	args := filters.NewArgs(filters.Arg("type", string(eventtypes.ContainerEventType)))
	for _, action := range []eventtypes.Action{eventtypes.ActionPause, eventtypes.ActionUnPause, eventtypes.ActionStart, eventtypes.ActionCommit} {
		args.Add("event", string(action))
	}
	messages, failed := e.docker.Events(ctx, eventtypes.ListOptions{Filters: args})
	return &thawWatch{messages: messages, failed: failed, stop: stop}
}

// heard is what happened to containers: their IDs.
type heard struct{ paused, ran []string }

// commitEventTimeout bounds how long the event of a commit is waited for. The
// engine sends it before it answers the commit.
const commitEventTimeout = 10 * time.Second

// untilCommit returns what has happened between watchThaws and the end of the
// commit with this comment. An engine sends events in the order of what they tell.
func (w *thawWatch) untilCommit(ctx context.Context, comment string) (heard, error) {
	limit := time.NewTimer(commitEventTimeout)
	defer limit.Stop()
	var h heard
	for {
		select {
		case m := <-w.messages:
			switch m.Action {
			case eventtypes.ActionPause:
				h.paused = append(h.paused, m.Actor.ID)
			case eventtypes.ActionUnPause, eventtypes.ActionStart:
				h.ran = append(h.ran, m.Actor.ID)
			case eventtypes.ActionCommit:
				if m.Actor.Attributes["comment"] == comment {
					return h, nil
				}
			}
		case err := <-w.failed:
			return h, fmt.Errorf("watch for containers that somebody thaws: %w", err)
		case <-ctx.Done():
			return h, context.Cause(ctx)
		case <-limit.C:
			return h, errors.New("watch for containers that somebody thaws: the engine has sent no event of the commit")
		}
	}
}
