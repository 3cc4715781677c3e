package build

import (
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// WaitReady waits, if that is asked for, until a container is healthy or, without a healthcheck, has
// run for a while. A container whose command ended with status 0 is ready. Its time began when it was
// started, or with it others that are waited for. If it does not come up, the error is a [NotReadyError].
func (b *Builder) WaitReady(ctx context.Context, id, name string, began time.Time, o runconfig.Waiting, p plan.Progress) error {
	if !o.Wait {
		return nil
	}
	c, _, err := b.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return fmt.Errorf("inspect container %s: %w", name, err)
	}
	limit, what := o.Settle, fmt.Sprintf("waiting %s for %s to stay up", o.Settle, name)
	if hasHealthcheck(c) {
		limit, what = healthTimeout(c.Config.Healthcheck, o.HealthTimeout), "waiting for "+name+" to become healthy"
	}
	p.Status("wait", what)
	deadline := began.Add(limit)
	return dockerop.Poll(ctx, func() (bool, error) {
		c, _, err := b.docker.ContainerInspectWithRaw(ctx, id, false)
		if err != nil {
			return false, fmt.Errorf("inspect container %s: %w", name, err)
		}
		ready, reason := assess(c, limit, !b.now().Before(deadline))
		if reason != "" {
			return false, b.notReady(ctx, c, name, reason)
		}
		return ready, nil
	})
}

// assess tells whether a container is ready, or why it never will be. When its time is over it
// always tells one of the two.
func assess(c container.InspectResponse, limit time.Duration, over bool) (ready bool, reason string) {
	if !c.State.Running && !c.State.Restarting && c.RestartCount == 0 && c.State.ExitCode == 0 {
		return true, ""
	}
	if reason := whyDown(c); reason != "" {
		return false, reason
	}
	if !hasHealthcheck(c) {
		return over, ""
	}
	health := c.State.Health
	switch {
	case health != nil && health.Status == container.Healthy:
		return true, ""
	case health != nil && health.Status == container.Unhealthy:
		return false, "became unhealthy" + lastCheck(health)
	case over:
		return false, fmt.Sprintf("did not become healthy within %s%s", limit, lastCheck(health))
	}
	return false, ""
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

// whyDown tells why a container that should run does not.
func whyDown(c container.InspectResponse) string {
	switch {
	case c.State.Restarting:
		return fmt.Sprintf("does not stay up: its command ended with status %d", c.State.ExitCode)
	case c.RestartCount > 0:
		return "does not stay up: the engine has had to restart it"
	case !c.State.Running:
		return fmt.Sprintf("did not stay up: its command ended with status %d", c.State.ExitCode)
	}
	return ""
}
