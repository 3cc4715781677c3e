package dockerop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/docker/docker/api/types/container"
)

// maxStats bounds an engine's answer about a container's use of memory.
const maxStats = 1 << 20

// MemoryUse returns how many per cent of its memory limit a container uses, as docker stats shows it:
// without what the kernel can drop at any time. It is 0 for a container that does not run.
func (e *Engine) MemoryUse(ctx context.Context, id string) (percent float64, err error) {
	answer, err := e.ContainerStatsOneShot(ctx, id)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var stats container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxStats)).Decode(&stats); err != nil {
		return 0, fmt.Errorf("read how much memory container %s uses: %w", Shorten(id), err)
	}
	m := stats.MemoryStats
	if m.Limit == 0 {
		return 0, nil
	}
	const ofAll = 100
	return float64(m.Usage-inactive(m)) * ofAll / float64(m.Limit), nil
}

// inactive is the part of the page cache that the kernel drops first. Both versions of cgroups have a
// name of their own for it.
func inactive(m container.MemoryStats) uint64 {
	for _, name := range []string{"total_inactive_file", "inactive_file"} {
		if bytes, has := m.Stats[name]; has && bytes < m.Usage {
			return bytes
		}
	}
	return 0
}
