package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/hooks"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// HookError says that a pre hook failed, and that for this reason no snapshot was taken.
type HookError struct {
	Container string // its name
	Output    string // the first part of it
	Err       error
}

func (e *HookError) Error() string {
	text := fmt.Sprintf("pre hook of container %s: %v", e.Container, e.Err)
	if e.Output != "" {
		text += ": " + e.Output
	}
	return text
}

// Unwrap returns what went wrong.
func (e *HookError) Unwrap() error { return e.Err }

// hookRun is the time between the two hooks of a container.
type hookRun struct {
	hooks.Hooks
	docker  *dockerop.Engine
	name    string
	exec    dockerop.Exec // without the command
	release func()        // of the guard
	p       plan.Progress
	ended   bool
}

// hooked tells whether hooks run around this snapshot's freeze. Commands run in running containers
// only.
func (a *part) hooked() bool {
	return !a.hooks.None() && dockerop.ContainerState(a.from.Container.State) == labels.StateRunning
}

// hookCommands returns the hooks that will run, as the engine's events have commands.
func (a *part) hookCommands() (all []string) {
	if !a.hooked() {
		return nil
	}
	for _, command := range []hooks.Command{a.hooks.Pre, a.hooks.Post} {
		if len(command) > 0 {
			all = append(all, strings.TrimSpace(strings.Join(command, " ")))
		}
	}
	return all
}

// betweenHooks calls f between the hooks of all containers: those of the first come first and last.
func (a *taking) betweenHooks(ctx context.Context, f func() error) error {
	for _, one := range slices.Backward(a.parts) {
		inner := f
		f = func() error { return one.betweenHooks(ctx, inner) }
	}
	return f()
}

// betweenHooks calls f between the two hooks of the container. The post hook runs whatever happens,
// also if the pre hook failed: that may have done half of its work.
func (a *part) betweenHooks(ctx context.Context, f func() error) error {
	if !a.hooked() {
		return f()
	}
	h := &hookRun{Hooks: a.hooks, docker: a.engine.docker, name: a.record.Container.Name, p: a.p, exec: dockerop.Exec{
		Container: a.from.Container.ID, Timeout: a.hooks.Timeout, Mark: string(a.record.ID),
	}}
	left := h.exec
	left.Command = h.Post
	release, err := a.engine.guard(ctx, dockerop.Watched{Hook: &left})
	if err != nil {
		return fmt.Errorf("start the guard: %w", err)
	}
	h.release, a.hook = release, h
	defer h.end(ctx)
	if err := h.begin(ctx); err != nil {
		return err
	}
	return f()
}

// begin runs the pre hook.
func (h *hookRun) begin(ctx context.Context) error {
	output, err := h.run(ctx, "pre", h.Pre)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	failure := &HookError{Container: h.name, Output: output, Err: err}
	if h.OnError == hooks.Fail {
		return failure
	}
	h.p.Warn("hook", failure.Error())
	return nil
}

// end runs the post hook, once, and also after Ctrl-C. By then all that it can change about the
// snapshot is over, so a failure is only a warning.
func (h *hookRun) end(ctx context.Context) {
	if h == nil || h.ended {
		return
	}
	h.ended = true
	output, err := h.run(context.WithoutCancel(ctx), "post", h.Post)
	if err != nil {
		h.p.Warn("hook", strings.TrimSuffix(fmt.Sprintf("post hook of container %s: %v: %s", h.name, err, output), ": "))
	}
	if !dockerop.IsExecRetriable(err) { // or the guard runs it, later
		h.release()
	}
}

// run runs one of the hooks. The output is a note, unless it belongs to an error.
func (h *hookRun) run(ctx context.Context, which string, command hooks.Command) (output string, err error) {
	if len(command) == 0 {
		return "", nil
	}
	h.p.Status("hook", fmt.Sprintf("running the %s hook in %s", which, h.name))
	x := h.exec
	x.Command = command
	output, err = h.docker.RunExec(ctx, x)
	output = strings.TrimSpace(output)
	if err == nil && output != "" {
		h.p.Note("hook", fmt.Sprintf("%s hook of container %s: %s", which, h.name, output))
	}
	return output, err
}

// quiesce ends all writing as the operation does that this snapshot is a part of. The post hook runs
// before: afterwards the container is stopped.
func (a *taking) quiesce(ctx context.Context) error {
	for _, one := range slices.Backward(a.parts) {
		one.hook.end(ctx)
	}
	return a.Quiesce(ctx)
}

// readHooked is [attempt.readUndisturbed] between the hooks. What the pre hooks have written is
// read before anybody is frozen.
func (r *attempt) readHooked(ctx context.Context) error {
	return r.betweenHooks(ctx, func() error {
		if slices.ContainsFunc(r.parts, func(one *part) bool { return one.hook != nil }) {
			if err := r.passLive(ctx); err != nil {
				return err
			}
		}
		return r.readUndisturbed(ctx)
	})
}

// commitHooked commits a container without volumes between the hooks: under the lock, so that nobody
// else's hooks run meanwhile, unless the lock is held already.
func (a *part) commitHooked(ctx context.Context, u *dockerop.Rollback) error {
	if !a.hooked() {
		return a.commitOnly(ctx, u)
	}
	if a.Begin == nil {
		return a.run(ctx, u)
	}
	return a.betweenHooks(ctx, func() error { return a.commitOnly(ctx, u) })
}

// EndHook does what a client that died would have done for its hooks: it ends the one that runs, and
// runs the post hook. An error means that it has to be called again.
func (cr *Capturer) EndHook(ctx context.Context, x dockerop.Exec) error {
	c, err := cr.docker.InspectIfThere(ctx, x.Container)
	if err != nil || c == nil || !c.State.Running {
		return err
	}
	if c.State.Paused {
		return errors.New("container " + dockerop.ContainerName(*c) + " is still paused")
	}
	cr.endLate(ctx, x)
	if len(x.Command) == 0 {
		return nil
	}
	if _, err = cr.docker.RunExec(ctx, x); dockerop.IsExecRetriable(err) {
		return err
	}
	return nil // it ran, or never will
}

// lateStart is how long a hook may take to begin after its client was killed: an engine that was asked
// to execute a command announces that, and makes the process then. It is looked for so often meanwhile.
const (
	lateStart = 2 * time.Second
	lateLooks = 2
)

// endLate ends the hook of a killed client, also if that begins within [lateStart]. Most likely there is
// nothing to end. It is not called once the post hook has run, which may have started what is to stay.
func (cr *Capturer) endLate(ctx context.Context, x dockerop.Exec) {
	_ = cr.docker.EndExec(ctx, x)
	for range lateLooks {
		select {
		case <-ctx.Done():
		case <-time.After(lateStart / lateLooks):
		}
		_ = cr.docker.EndExec(ctx, x)
	}
}
