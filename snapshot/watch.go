package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/watch"
)

// WatchOptions says which containers to watch, and how.
type WatchOptions struct {
	Containers []string         // names or IDs; none: every container whose labels say when it is captured
	When       watch.Texts      // goes before the labels
	Policy     retention.Policy // of automatic snapshots; labels go before it
	Limits     retention.Limits // what the user asks for of that goes before the labels
}

// How long to wait before the engine is tried again, which grows, and for its answer.
const (
	firstReconnect = time.Second
	lastReconnect  = 30 * time.Second
	listTimeout    = 30 * time.Second
)

// tidyInterval is how often the watcher looks for snapshots that have expired.
const tidyInterval = 30 * time.Second

// watcher is what happens around a [watch.Scheduler]: it tells it what the engine says, and takes the
// snapshots that it decides on. Its own goroutine has all fields; others send it what they found.
type watcher struct {
	engine    *Engine
	options   WatchOptions
	scheduler *watch.Scheduler
	tell      watch.Tell
	meters    map[string]context.CancelFunc // by container
	refused   map[string]bool               // containers that a warning was given for
	idle      map[string]bool               // names of containers that nothing says when to capture
	done      chan finished
	measured  chan measured
	tidied    chan time.Time // when to tidy up next
	working   sync.WaitGroup
	tidy      tidier

	messages <-chan eventtypes.Message // nil: the engine is away
	broken   <-chan error
	unlisten context.CancelFunc
	retry    <-chan time.Time
	pause    time.Duration
}

type finished struct {
	id  string
	err error
}

type measured struct {
	id      string
	percent float64
}

// Watch captures containers, and removes snapshots, as their policies say, until ctx ends. Then it
// returns nil. It goes on when the engine is restarted.
func (e *Engine) Watch(ctx context.Context, o WatchOptions, tell watch.Tell) error {
	w := &watcher{
		engine: e, options: o, scheduler: watch.New(), tell: tell,
		meters: map[string]context.CancelFunc{}, refused: map[string]bool{}, idle: map[string]bool{},
		done: make(chan finished), measured: make(chan measured), tidied: make(chan time.Time), pause: firstReconnect,
		tidy: tidier{due: true},
	}
	defer w.end()
	if err := w.connect(ctx); err != nil {
		return err
	}
	if err := w.checkNamed(); err != nil {
		return err
	}
	tell(watch.Report{What: watch.Started})
	for ctx.Err() == nil {
		w.step(ctx)
	}
	w.end()
	tell(watch.Report{What: watch.Stopped})
	return nil
}

// end waits until nothing is under way any more.
func (w *watcher) end() {
	if w.unlisten != nil {
		w.unlisten()
	}
	for id := range w.meters {
		w.unmeter(id)
	}
	w.working.Wait()
}

// step does what is due, and waits for the next thing to happen.
func (w *watcher) step(ctx context.Context) {
	now := w.engine.now()
	wait := tidyInterval
	if w.messages != nil {
		for _, decision := range w.scheduler.Due(now) {
			w.take(ctx, decision)
		}
		w.tidyUp(ctx)
		if next := w.scheduler.Next(); !next.IsZero() {
			wait = min(wait, max(next.Sub(now), 0))
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case m := <-w.messages:
		w.hear(ctx, m)
	case err := <-w.broken:
		w.lose(ctx, err)
	case <-w.retry:
		w.reconnect(ctx)
	case f := <-w.done:
		w.scheduler.Done(f.id, f.err != nil, w.engine.now())
	case m := <-w.measured:
		w.scheduler.Memory(m.id, m.percent, w.engine.now())
	case w.tidy.next = <-w.tidied:
		w.tidy.busy = false
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connect listens to the engine's events, and then finds the containers.
func (w *watcher) connect(ctx context.Context) error {
	listening, unlisten := context.WithCancel(ctx)
	args := filters.NewArgs(filters.Arg("type", string(eventtypes.ContainerEventType)), filters.Arg("type", string(eventtypes.ImageEventType)))
	for _, action := range []eventtypes.Action{
		eventtypes.ActionCreate, eventtypes.ActionStart, eventtypes.ActionDie, eventtypes.ActionOOM, eventtypes.ActionHealthStatus,
		eventtypes.ActionDestroy, eventtypes.ActionRename, eventtypes.ActionUpdate,
		eventtypes.ActionCommit, eventtypes.ActionTag, eventtypes.ActionImport, eventtypes.ActionLoad,
	} {
		args.Add("event", string(action))
	}
	messages, broken := w.engine.docker.Events(listening, eventtypes.ListOptions{Filters: args})
	if err := w.reconcile(ctx); err != nil {
		unlisten()
		return err
	}
	w.messages, w.broken, w.unlisten, w.retry, w.pause = messages, broken, unlisten, nil, firstReconnect
	return nil
}

// lose goes on without the engine.
func (w *watcher) lose(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		err = errors.New("the engine ended the connection")
	}
	w.tell(watch.Report{What: watch.Away, Error: err.Error()})
	w.unlisten()
	w.messages, w.broken = nil, nil
	w.retry = time.After(w.pause)
}

// reconnect tries to reach the engine again.
func (w *watcher) reconnect(ctx context.Context) {
	if err := w.connect(ctx); err != nil {
		w.pause = min(2*w.pause, lastReconnect)
		w.retry = time.After(w.pause)
		return
	}
	w.tidy.due = true
	w.tell(watch.Report{What: watch.Back})
}

// hear passes an event on to the scheduler.
func (w *watcher) hear(ctx context.Context, m eventtypes.Message) {
	id, now := m.Actor.ID, w.engine.now()
	if m.Type == eventtypes.ImageEventType {
		w.tidy.due = true
		return
	}
	switch m.Action {
	case eventtypes.ActionCommit:
		w.tidy.due = true
	case eventtypes.ActionOOM:
		w.scheduler.Event(id, watch.OOM, now)
	case eventtypes.ActionHealthStatusUnhealthy:
		w.scheduler.Event(id, watch.Unhealthy, now)
	case eventtypes.ActionDie:
		w.scheduler.Event(id, watch.Die, now)
		w.unmeter(id)
	case eventtypes.ActionDestroy:
		w.forget(id)
	case eventtypes.ActionCreate, eventtypes.ActionStart, eventtypes.ActionRename, eventtypes.ActionUpdate:
		if err := w.observe(ctx, id); err != nil {
			w.warn(m.Actor.Attributes["name"], id, err)
		}
	}
}

func (w *watcher) warn(name, id string, err error) {
	w.tell(watch.Report{What: watch.Warning, Container: name, ContainerID: id, Error: err.Error()})
}

// checkNamed refuses containers that nothing says when to capture. Those that do not exist may come.
func (w *watcher) checkNamed() error {
	var wrong error
	for _, name := range w.options.Containers {
		if w.idle[name] {
			wrong = errors.Join(wrong, fmt.Errorf("nothing says when to capture container %s", name))
		}
	}
	return wrong
}
