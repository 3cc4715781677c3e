package snapshot

import (
	"context"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// waitPoll is how often a container's state is looked at.
const waitPoll = 50 * time.Millisecond

// poll calls done until it says so, or fails, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for {
		over, err := done()
		if over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// waitReady waits until a container that was started is healthy; without a
// healthcheck, until it has run for a while.
func (e *Engine) waitReady(ctx context.Context, id, name string, o ReplaceOptions, p Progress) error {
	c, _, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return fmt.Errorf("inspect container %s: %w", name, err)
	}
	limit, what := o.Settle, fmt.Sprintf("waiting %s for %s to stay up", o.Settle, name)
	checked := hasHealthcheck(c)
	if checked {
		limit, what = healthTimeout(c.Config.Healthcheck, o.HealthTimeout), "waiting for "+name+" to become healthy"
	}
	if !o.Wait {
		return e.checkUp(c, name)
	}
	p.status("wait", what)
	deadline := e.now().Add(limit)
	return poll(ctx, func() (bool, error) {
		c, _, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
		if err != nil {
			return false, fmt.Errorf("inspect container %s: %w", name, err)
		}
		if err := e.checkUp(c, name); err != nil {
			return false, err
		}
		if checked && c.State.Health != nil {
			switch c.State.Health.Status {
			case container.Healthy:
				return true, nil
			case container.Unhealthy:
				return false, fmt.Errorf("container %s is unhealthy%s", name, lastCheck(c.State.Health))
			}
		}
		if e.now().Before(deadline) {
			return false, nil
		}
		if checked {
			return false, fmt.Errorf("container %s is not healthy after %s%s", name, limit, lastCheck(c.State.Health))
		}
		return true, nil
	})
}

// What an engine takes for what a healthcheck does not say.
const (
	defaultProbeTime    = 30 * time.Second // between two probes, and for each
	defaultProbeRetries = 3
)

// healthTimeout is how long a container may take to become healthy: what the user
// says, or as long as its healthcheck may take to know.
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
	return max(DefaultHealthTimeout, check.StartPeriod+(interval+timeout)*time.Duration(retries))
}

func hasHealthcheck(c container.InspectResponse) bool {
	check := c.Config.Healthcheck
	return check != nil && len(check.Test) > 0 && check.Test[0] != "NONE"
}

// checkUp tells why a container that should run does not.
func (e *Engine) checkUp(c container.InspectResponse, name string) error {
	switch {
	case c.State.Restarting:
		return fmt.Errorf("container %s does not stay up: its command ended with status %d", name, c.State.ExitCode)
	case c.RestartCount > 0:
		return fmt.Errorf("container %s does not stay up: the engine has had to restart it", name)
	case !c.State.Running:
		return fmt.Errorf("container %s did not stay up: its command ended with status %d", name, c.State.ExitCode)
	}
	return nil
}

// lastCheck is what the healthcheck printed last.
func lastCheck(h *container.Health) string {
	if h == nil || len(h.Log) == 0 {
		return ""
	}
	return ": " + h.Log[len(h.Log)-1].Output
}

// awaitGone waits until the engine has removed a container that was made with --rm.
func (e *Engine) awaitGone(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		_, _, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
		if cerrdefs.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
