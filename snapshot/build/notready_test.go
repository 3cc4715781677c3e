package build

import (
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"
)

// started is a container in some state, with a healthcheck if health is not nil.
func started(state container.State, restarts int, health *container.Health) container.InspectResponse {
	state.Health = health
	c := container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{State: &state, RestartCount: restarts}, Config: &container.Config{},
	}
	if health != nil {
		c.Config.Healthcheck = &container.HealthConfig{Test: []string{"CMD", "check"}}
	}
	return c
}

func TestAssess(t *testing.T) {
	failing := []*container.HealthcheckResult{{Output: "fine"}, {ExitCode: 1, Output: "connection\nrefused \x1b[2J\n"}}
	health := func(status string, log ...*container.HealthcheckResult) *container.Health {
		return &container.Health{Status: status, Log: log}
	}
	running := container.State{Running: true}
	for name, tc := range map[string]struct {
		c           container.InspectResponse
		over, ready bool
		reason      string
	}{
		"runs":               {c: started(running, 0, nil)},
		"has run for long":   {c: started(running, 0, nil), over: true, ready: true},
		"done":               {c: started(container.State{}, 0, nil), ready: true},
		"done, with a check": {c: started(container.State{}, 0, health(container.Starting)), ready: true},
		"failed":             {c: started(container.State{ExitCode: 7}, 0, nil), reason: "did not stay up: its command ended with status 7"},
		"starts again":       {c: started(container.State{Running: true, Restarting: true}, 0, nil), reason: "does not stay up: its command ended with status 0"},
		"was started again":  {c: started(running, 1, nil), reason: "does not stay up: the engine has had to restart it"},
		"not healthy yet":    {c: started(running, 0, health(container.Starting))},
		"healthy":            {c: started(running, 0, health(container.Healthy)), ready: true},
		"unhealthy": {
			c: started(running, 0, health(container.Unhealthy, failing...)), reason: `became unhealthy; last check: "connection refused \x1b[2J"`,
		},
		"says nothing": {
			c:      started(running, 0, health(container.Unhealthy, &container.HealthcheckResult{ExitCode: 3})),
			reason: "became unhealthy; its last check ended with status 3",
		},
		"never healthy": {
			c: started(running, 0, health(container.Starting, failing[0])), over: true, reason: `did not become healthy within 2m0s; last check: "fine"`,
		},
		"no check yet": {c: started(running, 0, health(container.Starting)), over: true, reason: "did not become healthy within 2m0s"},
	} {
		ready, reason := assess(tc.c, 2*time.Minute, tc.over)
		assert.Equal(t, ready, tc.ready, name)
		assert.Equal(t, reason, tc.reason, name)
	}
}

func TestCut(t *testing.T) {
	assert.Equal(t, cut(strings.Repeat("ä", 400)), strings.Repeat("ä", 250)+" …")
}

func TestHealthTimeoutIsAsLongAsTheHealthcheckNeeds(t *testing.T) {
	for _, tc := range []struct {
		check container.HealthConfig
		asked time.Duration
		want  time.Duration
	}{
		{container.HealthConfig{}, 0, 3 * time.Minute},
		{container.HealthConfig{Interval: time.Second, Timeout: time.Second, Retries: 1}, 0, 2 * time.Minute},
		{container.HealthConfig{Interval: 5 * time.Minute, Timeout: time.Minute, Retries: 2, StartPeriod: time.Hour}, 0, 72 * time.Minute},
		{container.HealthConfig{Interval: 5 * time.Minute}, time.Second, time.Second},
	} {
		assert.Equal(t, healthTimeout(&tc.check, tc.asked), tc.want)
	}
}
