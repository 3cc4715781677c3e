package snapshot

import (
	"context"
	"strings"

	"github.com/docker/go-connections/nat"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// reportPorts says where ports are published that were replaced: the engine has
// chosen others when it started the container.
func (e *Engine) reportPorts(ctx context.Context, id string, replaced plan.Plan, p plan.Progress) {
	if len(replaced) == 0 {
		return
	}
	c, _, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
	for _, step := range replaced {
		text := step.String()
		_, port, _ := strings.Cut(step.Target, plan.PortFor)
		if chosen := runconfig.ChosenPorts(c, nat.Port(port)); err == nil && len(chosen) > 0 {
			text = plan.ReplacedPort(step, "is published on "+strings.Join(chosen, ", ")+" instead")
		}
		p.Warn("start", text)
	}
}
