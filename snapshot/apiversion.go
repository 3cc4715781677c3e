package snapshot

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// warnDropped compares what was asked for with what the engine made of it. An
// engine ignores what it does not know.
func (e *Engine) warnDropped(ctx context.Context, id string, sp *runconfig.Spec, p plan.Progress) error {
	_, raw, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return fmt.Errorf("inspect new container: %w", err)
	}
	asked, err := json.Marshal(map[string]any{"Config": sp.Config, "HostConfig": sp.Host})
	if err != nil {
		return fmt.Errorf("compare configuration: %w", err)
	}
	lost, err := runconfig.MissingFields("", asked, raw)
	if err != nil {
		return fmt.Errorf("compare configuration: %w", err)
	}
	for _, field := range lost {
		p.Warn("create", "the engine does not know "+field[1:]+", it was left out")
	}
	return nil
}
