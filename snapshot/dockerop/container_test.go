package dockerop

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// An engine calls a container unhealthy that was paused, for a snapshot for example.
func TestContainerHealth(t *testing.T) {
	for want, health := range map[labels.Health]*container.Health{
		"":                     nil,
		labels.HealthHealthy:   {Status: container.Healthy},
		labels.HealthUnhealthy: {Status: container.Unhealthy, FailingStreak: 3},
		labels.HealthStarting:  {Status: container.Unhealthy},
	} {
		assert.Equal(t, ContainerHealth(&container.State{Health: health}), want)
	}
}
