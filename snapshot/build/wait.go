package build

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// Awaited is a container that a restore has started.
type Awaited struct {
	ID, Name string
	Began    time.Time     // of the waiting, for all containers that were started together
	Health   labels.Health // when it was captured
}

// WaitReady waits, with o.Wait, until a container is healthy or, without a healthcheck, has run for a while. One
// that was unhealthy when it was captured only has to run. The engine may restart a container that has a restart policy
// as long as the time lasts. A container whose command ended with status 0 is ready. If a container does not come up, the
// error is a [NotReadyError].
func (b *Builder) WaitReady(ctx context.Context, a Awaited, o runconfig.Waiting, p plan.Progress) error {
	if !o.Wait {
		return nil
	}
	c, _, err := b.docker.ContainerInspectWithRaw(ctx, a.ID, false)
	if err != nil {
		return fmt.Errorf("inspect container %s: %w", a.Name, err)
	}
	wait := patience{settle: o.Settle, limit: o.Settle, health: hasHealthcheck(c) && a.Health != labels.HealthUnhealthy}
	what := fmt.Sprintf("waiting %s for %s to stay up", o.Settle, a.Name)
	switch {
	case wait.health:
		wait.limit, what = healthTimeout(c.Config.Healthcheck, o.HealthTimeout), "waiting for "+a.Name+" to become healthy"
	case hasRestartPolicy(c):
		wait.limit = max(o.Settle, cmp.Or(o.HealthTimeout, runconfig.DefaultHealthTimeout))
	}
	p.Status("wait", what)
	since, started := a.Began, c.State.StartedAt
	return dockerop.Poll(ctx, func() (bool, error) {
		c, _, err := b.docker.ContainerInspectWithRaw(ctx, a.ID, false)
		if err != nil {
			return false, fmt.Errorf("inspect container %s: %w", a.Name, err)
		}
		now := b.now()
		if c.State.StartedAt != started {
			since, started = now, c.State.StartedAt
		}
		wait.up, wait.waited = now.Sub(since), now.Sub(a.Began)
		ready, reason := wait.assess(c)
		if reason != "" {
			return false, b.notReady(ctx, c, a.Name, reason, wait.isOver() && wait.limit > wait.settle)
		}
		return ready, nil
	})
}

// patience is the time that a container is given, and the time it has taken.
type patience struct {
	settle time.Duration // how long it has to run without a healthcheck
	limit  time.Duration // how long it may take
	health bool          // it has to become healthy
	up     time.Duration // since its last start
	waited time.Duration
}

func (w patience) isOver() bool { return w.waited >= w.limit }

// assess reports whether a container is ready, or why it never will be. When the time is over it reports one of the two.
func (w patience) assess(c container.InspectResponse) (ready bool, reason string) {
	restarts := hasRestartPolicy(c)
	ended := !c.State.Running && !c.State.Restarting
	switch {
	case ended && c.State.ExitCode == 0 && (restarts || c.RestartCount == 0):
		return true, ""
	case ended:
		return false, fmt.Sprintf("did not stay up: its command ended with status %d", c.State.ExitCode)
	case !restarts && c.State.Restarting:
		return false, fmt.Sprintf("does not stay up: its command ended with status %d", c.State.ExitCode)
	case !restarts && c.RestartCount > 0:
		return false, "does not stay up: the engine has had to restart it"
	case !c.State.Restarting && !w.health && w.up >= w.settle:
		return true, ""
	case w.health && !c.State.Restarting:
		return w.assessHealth(c)
	case w.isOver() && c.RestartCount > 0:
		return false, fmt.Sprintf("did not stay up within %s: the engine has restarted it %d times", w.limit, c.RestartCount)
	}
	return false, ""
}

// assessHealth is assess for a container that runs, and has to become healthy.
func (w patience) assessHealth(c container.InspectResponse) (ready bool, reason string) {
	health := c.State.Health
	switch {
	case health != nil && health.Status == container.Healthy:
		return true, ""
	case health != nil && health.Status == container.Unhealthy:
		return false, "became unhealthy" + lastCheck(health)
	case w.isOver():
		return false, fmt.Sprintf("did not become healthy within %s%s", w.limit, lastCheck(health))
	}
	return false, ""
}

func hasRestartPolicy(c container.InspectResponse) bool {
	return c.HostConfig != nil && !c.HostConfig.RestartPolicy.IsNone()
}

// The engine's defaults for a healthcheck.
const (
	defaultProbeTime    = 30 * time.Second // between two probes, and for each
	defaultProbeRetries = 3
)

// healthTimeout is how long a container may take to become healthy: what the user asked for, or
// the longest time that its healthcheck may need.
func healthTimeout(check *container.HealthConfig, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	interval, timeout, retries := check.Interval, check.Timeout, check.Retries
	if interval == 0 {
		interval = defaultProbeTime
	}
	if timeout == 0 {
		timeout = defaultProbeTime
	}
	if retries == 0 {
		retries = defaultProbeRetries
	}
	return max(runconfig.DefaultHealthTimeout, check.StartPeriod+(interval+timeout)*time.Duration(retries))
}

func hasHealthcheck(c container.InspectResponse) bool {
	check := c.Config.Healthcheck
	return check != nil && len(check.Test) > 0 && check.Test[0] != "NONE"
}
