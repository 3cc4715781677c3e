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
	pauses   map[string]*pause // by container ID
}

// pause is how long a container was paused since the watch began.
type pause struct {
	paused bool
	since  time.Time // of the last event, by the engine's clock
	total  time.Duration
}

// WatchThaws begins to listen. The caller must call Stop of what it returns.
func (e *Engine) WatchThaws(ctx context.Context) *ThawWatch {
	ctx, stop := context.WithCancel(ctx)
	args := filters.NewArgs(filters.Arg("type", string(eventtypes.ContainerEventType)))
	for _, action := range []eventtypes.Action{eventtypes.ActionPause, eventtypes.ActionUnPause, eventtypes.ActionStart, eventtypes.ActionCommit} {
		args.Add("event", string(action))
	}
	messages, failed := e.Events(ctx, eventtypes.ListOptions{Filters: args})
	return &ThawWatch{messages: messages, failed: failed, stop: stop, pauses: map[string]*pause{}}
}

// note measures pauses. Engine 20.10 may send an event twice.
func (w *ThawWatch) note(m eventtypes.Message) {
	p := w.pauses[m.Actor.ID]
	if p == nil {
		p = &pause{}
		w.pauses[m.Actor.ID] = p
	}
	at := time.Unix(0, m.TimeNano)
	if p.paused {
		p.total += max(0, at.Sub(p.since))
	}
	p.since = at
	switch m.Action {
	case eventtypes.ActionPause:
		p.paused = true
	case eventtypes.ActionUnPause, eventtypes.ActionStart:
		p.paused = false
	}
}

// thawEventTimeout bounds the wait for the event that ends a pause. It is sent before the commit is answered,
// except by an engine that is busy.
const thawEventTimeout = 2 * time.Second

// Paused returns how long a container was paused, after a commit that paused it. It waits for the event that
// ends the pause; without that, the pause lasted at least until the last event.
func (w *ThawWatch) Paused(ctx context.Context, id string) time.Duration {
	limit := time.NewTimer(thawEventTimeout)
	defer limit.Stop()
	for p := w.pauses[id]; p != nil && p.paused; p = w.pauses[id] {
		select {
		case m := <-w.messages:
			w.note(m)
			continue
		case <-w.failed: //nolint:errcheck // without the events there is nothing to wait for
		case <-ctx.Done():
		case <-limit.C:
		}
		break
	}
	if p := w.pauses[id]; p != nil {
		return p.total
	}
	return 0
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
			w.note(m)
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
