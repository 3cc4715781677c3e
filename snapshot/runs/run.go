package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// Rooms is what a [Runner] works with.
type Rooms struct {
	Docker  *dockerop.Engine
	Pending *pending.Finder
	Keeper  *Keeper
	Create  Create // takes a snapshot, and numbers it
	Replace func(context.Context, replace.Options, plan.Progress) (replace.Result, error)
	Limit   Limit
	Now     func() time.Time
	Random  io.Reader
}

// Runner runs commands with snapshots of a container around them.
type Runner struct {
	docker  *dockerop.Engine
	pending *pending.Finder
	keeper  *Keeper
	create  Create
	replace func(context.Context, replace.Options, plan.Progress) (replace.Result, error)
	limit   Limit
	now     func() time.Time
	random  io.Reader
}

// NewRunner returns a runner that works with these rooms.
func NewRunner(r Rooms) *Runner {
	return &Runner{
		docker: r.Docker, pending: r.Pending, keeper: r.Keeper, create: r.Create, replace: r.Replace, limit: r.Limit, now: r.Now, random: r.Random,
	}
}

// run is one run under way.
type run struct {
	*Runner
	Options
	policy  retention.Policy
	session session.Session
	p       plan.Progress
	start   labels.ID // of the run's first snapshot
	limits  *limiter
}

// Run runs command with snapshots around it. Once the command runs nothing but its end stops the run:
// a snapshot that fails, or takes too long, is a warning. Run fails if the command could not be
// started, and if there is no such container.
func (r *Runner) Run(ctx context.Context, o Options, command Command, p plan.Progress) (Result, error) {
	t := &run{Runner: r, Options: o, p: p}
	c, err := t.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	t.limits = startLimiter(func() { t.applyLimits(ctx) })
	following := r.follow(ctx, t.session, c, t.takes(retention.IntervalEveryAction), t.takeAfterAction, p)
	status, err := t.around(ctx, command, following)
	t.limits.finish() // as long as the run is unfinished, the snapshot of its start stays
	t.complete(ctx, status, err)
	return Result{Session: t.session, Status: status}, err
}

// begin finds the container, and writes the session.
func (t *run) begin(ctx context.Context) (container.InspectResponse, error) {
	c, _, err := t.docker.ContainerInspectWithRaw(ctx, t.Container, false)
	if err != nil {
		return c, err // the engine's own words: No such container: x
	}
	t.setPolicy(c)
	if t.RunID == "" {
		id, err := labels.NewID(t.now(), t.random)
		if err != nil {
			return c, fmt.Errorf("name the run: %w", err)
		}
		t.RunID = "run-" + string(id)
	}
	words := t.Command
	if t.HideArguments && len(words) > 1 {
		words = words[:1]
	}
	t.session, err = t.keeper.begin(ctx, session.Session{
		RunID: t.RunID, Command: words, Container: dockerop.ContainerName(c), ContainerID: c.ID,
		Volumes: mounts(c, mount.TypeVolume), Binds: mounts(c, mount.TypeBind),
		Interval: string(t.policy.Interval), Started: t.now().UTC(), Status: session.StatusUnfinished,
	})
	return c, err
}

// setPolicy takes the user's policy, then the container's labels, then the options.
func (t *run) setPolicy(c container.InspectResponse) {
	var wrong []error
	var own map[string]string
	if c.Config != nil {
		own = c.Config.Labels
	}
	t.policy, wrong = t.Policy.ForContainer(own)
	for _, err := range wrong {
		t.p.Warn("run", err.Error())
	}
	if t.Override != nil {
		t.Override(&t.policy)
	}
	if !t.policy.Enabled && t.RestoreOnFailure {
		t.p.Warn("run", "automatic snapshots are switched off by a setting: a command that fails is not followed by a restore")
	}
}

// mounts lists the mounts of a container of one type.
func mounts(c container.InspectResponse, kind mount.Type) []session.Mount {
	list := []session.Mount{}
	for _, m := range c.Mounts {
		if m.Type != kind {
			continue
		}
		one := session.Mount{Name: m.Name, Destination: m.Destination}
		if kind == mount.TypeBind {
			one = session.Mount{Source: m.Source, Destination: m.Destination}
		}
		list = append(list, one)
	}
	return list
}

// takes tells whether snapshots are taken at the moments of one of these intervals.
func (t *run) takes(intervals ...retention.Interval) bool {
	for _, interval := range intervals {
		if t.policy.Enabled && t.policy.Interval == interval {
			return true
		}
	}
	return false
}

// around takes the first snapshot, runs the command, and takes the last.
func (t *run) around(ctx context.Context, command Command, following *following) (status int, err error) {
	atStart := t.takes(retention.IntervalRunStart, retention.IntervalRunBoundaries, retention.IntervalEveryAction)
	if atStart || t.RestoreOnFailure && t.policy.Enabled {
		t.start = t.take(ctx, labels.TriggerRunStart)
	}
	if ctx.Err() != nil {
		following.finish(ctx)
		return 0, context.Cause(ctx)
	}
	status, err = command(ctx, t.session)
	following.finish(ctx)
	if t.takes(retention.IntervalRunEnd, retention.IntervalRunBoundaries) {
		t.take(ctx, labels.TriggerRunEnd)
	}
	if t.RestoreOnFailure && t.policy.Enabled && (status != 0 || err != nil) {
		t.restore(ctx)
	}
	return status, err
}

func (t *run) takeAfterAction(ctx context.Context) { t.take(ctx, labels.TriggerAfterAction) }

// errTimeout ends a snapshot that takes too long.
var errTimeout = errors.New("it took too long")

// timeoutGrace is how long a snapshot that was given up may clean up, before it is not waited for any
// more.
const timeoutGrace = 10 * time.Second

// take takes an automatic snapshot, and returns its ID. If it fails or takes too long, that is a
// warning, and the ID is empty.
func (t *run) take(ctx context.Context, trigger labels.Trigger) labels.ID {
	limited, stop := context.WithTimeoutCause(ctx, t.Timeout, errTimeout)
	type answer struct {
		created capture.Created
		err     error
	}
	answered := make(chan answer, 1)
	go func() {
		defer stop()
		created, err := t.create(limited, capture.Options{Container: t.session.Container, Trigger: trigger, RunID: t.RunID}, t.p)
		answered <- answer{created, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-time.After(t.Timeout + timeoutGrace):
		a.err = errTimeout
	}
	switch {
	case a.err == nil:
		if t.limits != nil {
			t.limits.request()
		}
		return a.created.ID
	case context.Cause(limited) == errTimeout: //nolint:errorlint // a cause is not wrapped
		t.p.Warn("run", fmt.Sprintf("no %s snapshot of container %s was taken: it took longer than %s", trigger, t.session.Container, t.Timeout))
	case ctx.Err() == nil:
		t.p.Warn("run", fmt.Sprintf("no %s snapshot of container %s was taken: %v", trigger, t.session.Container, a.err))
	}
	return ""
}

// restore brings the container back to what it was when the run started.
func (t *run) restore(ctx context.Context) {
	if t.start == "" {
		t.p.Warn("run", "container "+t.session.Container+" stays as the command has left it: there is no snapshot of the run's start")
		return
	}
	began := t.now().UTC()
	o := replace.Options{
		RestoreOptions: runconfig.RestoreOptions{
			Snapshot: string(t.start), Name: t.session.Container, Waiting: runconfig.Waiting{Wait: true, Settle: runconfig.DefaultSettle},
		},
	}
	result, err := t.replace(ctx, o, t.p)
	done := session.Restore{At: began, Snapshot: t.start, Status: session.OutcomeRestored}
	if result.Safety != nil {
		done.Safety = result.Safety.ID
	}
	if err != nil {
		done.Status = session.OutcomeRolledBack
		t.p.Warn("run", fmt.Sprintf("container %s was not restored to the start of run %s, snapshot %s: %v", t.session.Container, t.RunID, t.start, err))
	} else {
		t.p.Note("run", fmt.Sprintf("The command failed: container %s is now as it was at the start of run %s: %s", t.session.Container, t.RunID, result.Snapshot.Title()))
	}
	if err := t.keeper.update(ctx, t.RunID, func(s *session.Session) error {
		s.Restores = append(s.Restores, done)
		return nil
	}); err != nil {
		t.p.Warn("run", "the session of run "+t.RunID+" lacks the restore: "+err.Error())
	}
}

// complete writes how the run has ended, also after Ctrl-C.
func (t *run) complete(ctx context.Context, status int, failure error) {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	err := t.keeper.update(ctx, t.RunID, func(s *session.Session) error {
		s.Ended, s.Status = t.now().UTC(), session.StatusFailed
		if failure == nil {
			s.ExitCode = &status
		}
		if failure == nil && status == 0 {
			s.Status = session.StatusCompleted
		}
		t.session = *s
		return nil
	})
	if err != nil {
		t.p.Warn("run", "the session of run "+t.RunID+" stays unfinished: "+err.Error())
	}
}
