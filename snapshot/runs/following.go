package runs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/hooks"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// How long to wait after the command has ended: for all events of that time, for actions that have not
// ended by then, and for a restore that is under way. reopenPause is between two attempts to listen.
const (
	lastEvents  = 3 * time.Second
	lastActions = 3 * time.Second
	lastRestore = time.Minute
	reopenPause = time.Second
)

// following listens to what happens to the container of a run until the command has ended.
type following struct {
	runner    *Runner
	runID     string
	container string // name
	actions   bool   // take a snapshot after each
	take      func(ctx context.Context)
	progress  plan.Progress

	stream   stream
	follower *follower
	own      map[string][]string // by container ID: commands that are no actions
	ids      []string            // of the containers that have had the name
	olds     map[string]string   // by worker: the container that it replaces
	hooks    map[string][]string // by worker: commands that are hooks of its snapshot, and no actions

	ending chan string // the marker after which all events of the run have been heard, or noMarker
	over   chan struct{}
	once   sync.Once
}

// follow begins to follow the container c. The caller must call finish of what it returns.
func (r *Runner) follow(ctx context.Context, s session.Session, c container.InspectResponse, actions bool, take func(context.Context), p plan.Progress) *following {
	w := &following{
		runner: r, runID: s.RunID, container: s.Container, actions: actions, take: take, progress: p,
		stream: stream{docker: r.docker}, follower: newFollower(), own: map[string][]string{}, olds: map[string]string{}, hooks: map[string][]string{},
		ending: make(chan string), over: make(chan struct{}),
	}
	w.learn(c)
	w.stream.open(ctx)
	go w.loop(ctx)
	return w
}

// finish hears everything that has happened so far, has the last snapshot taken that is due, and ends.
func (w *following) finish(ctx context.Context) {
	w.once.Do(func() {
		if w.mark(ctx) != nil {
			w.tell(noMarker)
		}
	})
	<-w.over
}

// noMarker says that what was heard by now has to do.
const noMarker = "none"

// mark makes something happen on the engine that shows in the stream of events, behind everything that
// has happened before.
func (w *following) mark(ctx context.Context) error {
	nonce, err := dockerop.LockNonce(w.runner.random)
	if err != nil {
		return err
	}
	name := dockerop.LockName(dockerop.RunLocks, nonce)
	w.tell(name) // before it can be heard
	// Its labels have it swept if this client is killed now.
	_, err = w.runner.docker.VolumeCreate(ctx, volume.CreateOptions{Name: name, Driver: "local", Labels: dockerop.LockLabels(name)})
	if err != nil {
		return err
	}
	return w.runner.docker.RemoveLock(ctx, name)
}

// tell tells the loop what it has to hear before the end.
func (w *following) tell(marker string) {
	select {
	case w.ending <- marker:
	case <-w.over:
	}
}

// ends is what the loop knows about the end.
type ends struct {
	marker   string
	caughtUp bool
	limit    <-chan time.Time
}

func (w *following) loop(ctx context.Context) {
	defer close(w.over)
	defer w.stream.close()
	taken := make(chan struct{}, 1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var reopen <-chan time.Time
	var end ends
	for {
		select {
		case m := <-w.stream.messages:
			if w.stream.isNew(m) {
				w.hear(ctx, m)
			}
			if end.marker != "" && m.Actor.ID == end.marker {
				end = w.caughtUp()
			}
		case <-w.stream.failed: //nolint:errcheck // it is opened again, whatever it was
			w.stream.messages, w.stream.failed = nil, nil
			reopen = time.After(reopenPause)
		case <-reopen:
			w.stream.open(ctx)
		case <-taken:
			w.follower.taken()
		case <-timer.C:
		case end.marker = <-w.ending:
			if end.limit = time.After(lastEvents); end.marker == noMarker {
				end = w.caughtUp()
			}
		case <-end.limit:
			end = w.giveUp(end)
		case <-ctx.Done():
			if w.follower.taking {
				<-taken
			}
			return
		}
		w.next(ctx, timer, taken)
		if end.caughtUp && w.follower.idle() {
			return
		}
	}
}

// caughtUp is called when all events until the end of the command have been heard.
func (w *following) caughtUp() ends {
	w.follower.ending = true
	return ends{caughtUp: true, limit: time.After(lastActions)}
}

// giveUp stops waiting for what has not come in time: events, then the ends of actions, then of restores.
func (w *following) giveUp(end ends) ends {
	switch {
	case !end.caughtUp:
		return w.caughtUp()
	case len(w.follower.actions) > 0:
		w.follower.forgetActions()
		end.limit = time.After(lastRestore)
	default:
		w.follower.forgetRestores()
	}
	return end
}

// next has a snapshot taken if one is due, or sets the timer for that.
func (w *following) next(ctx context.Context, timer *time.Timer, taken chan<- struct{}) {
	take, wait := w.follower.due(w.runner.now())
	if wait > 0 {
		timer.Reset(wait)
	}
	if !take {
		return
	}
	w.follower.begin()
	go func() {
		w.take(ctx)
		taken <- struct{}{}
	}()
}

// learn remembers what has to be known of a container that has the name.
func (w *following) learn(c container.InspectResponse) {
	if _, known := w.own[c.ID]; known {
		return
	}
	w.own[c.ID] = ownCommands(c.Config)
	w.ids = append(w.ids, c.ID)
}

// hear makes of an event what the follower has to know.
func (w *following) hear(ctx context.Context, m eventtypes.Message) {
	switch m.Type {
	case eventtypes.NetworkEventType:
		if slices.Contains(w.ids, m.Actor.Attributes["container"]) {
			w.note(ctx, func(s *session.Session) {
				s.HeardNetwork(session.NetworkEvent{At: timeOf(m), Action: string(m.Action), Network: m.Actor.Attributes["name"]})
			})
		}
	case eventtypes.ContainerEventType:
		w.hearContainer(ctx, m)
	default: // the marker
	}
}

func (w *following) hearContainer(ctx context.Context, m eventtypes.Message) {
	isOurs, exec := m.Actor.Attributes["name"] == w.container, m.Actor.Attributes["execID"]
	command, started := execCommand(m.Action)
	switch {
	case started && isOurs && w.actions:
		if !w.isHook(command) && !slices.Contains(w.ownCommandsOf(ctx, m.Actor.ID), command) {
			w.follower.began(exec, w.runner.now())
		}
	case m.Action == eventtypes.ActionExecDie && isOurs:
		w.follower.ended(exec, w.runner.now())
	case m.Action == eventtypes.ActionCreate:
		if commands := volumebackup.HooksOf(m.Actor.Attributes); len(commands) > 0 {
			w.hooks[m.Actor.ID] = commands
		}
		w.restoreBegan(ctx, m)
	case m.Action == eventtypes.ActionDie:
		delete(w.hooks, m.Actor.ID)
		w.restoreEnded(ctx, m)
	}
}

// isHook tells whether a command is the hook of a snapshot that is being taken, or ends one that hangs.
// Anybody can make a container with the label of a worker; all that they win is that a command of theirs
// is no action.
func (w *following) isHook(command string) bool {
	for _, commands := range w.hooks {
		if slices.Contains(commands, command) {
			return true
		}
	}
	return hooks.IsShell(command) || dockerop.EndsExec(command)
}

// ownCommandsOf returns the commands that are no actions in a container.
func (w *following) ownCommandsOf(ctx context.Context, id string) []string {
	if own, known := w.own[id]; known {
		return own
	}
	if c, err := w.runner.docker.InspectIfThere(ctx, id); err == nil && c != nil {
		w.learn(*c)
	}
	return w.own[id]
}

// restoreBegan hears that a container was made. If that is the worker of a restore in place of our
// container, no snapshot starts until it has ended.
func (w *following) restoreBegan(ctx context.Context, m eventtypes.Message) {
	r, old, ok := restoreOf(m.Actor.Attributes, w.container, timeOf(m))
	if !ok || !w.runner.isWorker(ctx, m.Actor.ID) {
		return
	}
	w.olds[m.Actor.ID] = old
	w.follower.restoreBegan(m.Actor.ID, r)
}

// restoreEnded hears that a container has ended. If that was the worker of a restore in place, it finds
// out how the restore has ended.
func (w *following) restoreEnded(ctx context.Context, m eventtypes.Message) {
	r, ok := w.follower.restoreEnded(m.Actor.ID)
	if !ok {
		return
	}
	c, err := w.runner.docker.InspectIfThere(ctx, w.container)
	if err != nil {
		w.progress.Warn("run", "how the restore of snapshot "+string(r.Snapshot)+" has ended is not known: "+err.Error())
		return
	}
	r.Status = session.OutcomeRolledBack
	if c != nil && c.ID != w.olds[m.Actor.ID] {
		r.Status = session.OutcomeRestored
		w.learn(*c)
	}
	w.note(ctx, func(s *session.Session) { s.Restores = append(s.Restores, r) })
}

// note changes the session. A failure is a warning: it must not stop the run.
func (w *following) note(ctx context.Context, change func(*session.Session)) {
	err := w.runner.keeper.update(ctx, w.runID, func(s *session.Session) error {
		change(s)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		w.progress.Warn("run", fmt.Sprintf("the session of run %s lacks something that has happened: %v", w.runID, err))
	}
}

// isWorker tells whether a container is one of our workers. Anybody can make one with such labels.
func (r *Runner) isWorker(ctx context.Context, id string) bool {
	workers, err := r.pending.Workers(ctx, pending.LabelJournal)
	return err == nil && slices.ContainsFunc(workers, func(w pending.Worker) bool { return w.ID == id && w.Alive })
}
