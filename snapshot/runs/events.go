package runs

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/hooks"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// stream is the engine's events, which goes on when the engine comes back after it was out of reach.
type stream struct {
	docker *dockerop.Engine
	last   int64 // nanoseconds: when the last event happened

	messages <-chan eventtypes.Message
	failed   <-chan error
	stop     context.CancelFunc
}

// open begins to listen: to all that happens from now on or, if it has listened before, since then.
func (s *stream) open(ctx context.Context) {
	s.close()
	args := filters.NewArgs()
	for _, kind := range []eventtypes.Type{eventtypes.ContainerEventType, eventtypes.NetworkEventType, eventtypes.VolumeEventType} {
		args.Add("type", string(kind))
	}
	for _, action := range []eventtypes.Action{
		eventtypes.ActionExecStart, eventtypes.ActionExecDie, eventtypes.ActionCreate, eventtypes.ActionDie,
		eventtypes.ActionConnect, eventtypes.ActionDisconnect,
	} {
		args.Add("event", string(action))
	}
	o := eventtypes.ListOptions{Filters: args}
	if s.last > 0 {
		o.Since = strconv.FormatFloat(float64(s.last/int64(time.Microsecond))/1e6, 'f', 6, 64)
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.messages, s.failed = s.docker.Events(ctx, o)
}

func (s *stream) close() {
	if s.stop != nil {
		s.stop()
	}
}

// isNew tells whether an event was not heard before the stream was opened again.
func (s *stream) isNew(m eventtypes.Message) bool {
	if m.TimeNano != 0 && m.TimeNano <= s.last {
		return false
	}
	s.last = max(s.last, m.TimeNano)
	return true
}

// execCommand returns the command of an event that says that an exec has started.
func execCommand(action eventtypes.Action) (command string, ok bool) {
	command, ok = strings.CutPrefix(string(action), string(eventtypes.ActionExecStart)+":")
	return strings.TrimSpace(command), ok
}

// ownCommands returns the commands, as events have them, that are executed in a container although they
// are no actions: its healthcheck, and the hooks that its labels name.
func ownCommands(c *container.Config) []string {
	if c == nil {
		return nil
	}
	var own []string
	if c.Healthcheck != nil && len(c.Healthcheck.Test) > 1 {
		shell := []string(c.Shell)
		if len(shell) == 0 {
			shell = []string{"/bin/sh", "-c"}
		}
		test := c.Healthcheck.Test[1:]
		if c.Healthcheck.Test[0] == "CMD-SHELL" {
			test = slices.Concat(shell, test)
		}
		own = append(own, strings.TrimSpace(strings.Join(test, " ")))
	}
	for _, key := range []string{labels.KeyPolicyPre, labels.KeyPolicyPost} {
		if hook := hooks.ParseCommand(c.Labels[key]); len(hook) > 0 {
			own = append(own, strings.TrimSpace(strings.Join(hook, " ")))
		}
	}
	return own
}

// restoreOf reads from the labels of a worker which restore in place it is for. It returns false if it
// is for none, or for that of another container.
func restoreOf(worker map[string]string, name string, at time.Time) (session.Restore, string, bool) {
	if worker[pending.LabelJournal] == "" {
		return session.Restore{}, "", false
	}
	j, err := pending.ReadJournal(worker)
	if err != nil {
		return session.Restore{}, "", false
	}
	for _, m := range j.Members {
		if m.Name == name || m.OldName == name {
			return session.Restore{At: at, Snapshot: m.Snapshot, Safety: m.Safety}, m.Old, true
		}
	}
	return session.Restore{}, "", false
}

// timeOf is when an event happened.
func timeOf(m eventtypes.Message) time.Time { return time.Unix(0, m.TimeNano).UTC() }
