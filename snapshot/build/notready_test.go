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
	running, restarting := container.State{Running: true}, container.State{Running: true, Restarting: true, ExitCode: 3}
	always := func(c container.InspectResponse) container.InspectResponse {
		c.HostConfig = &container.HostConfig{RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyAlways}}
		return c
	}
	const minute, settle = time.Minute, 2 * time.Second
	for name, tc := range map[string]struct {
		c      container.InspectResponse
		wait   patience // the settling time is added
		ready  bool
		reason string
	}{
		"runs":               {c: started(running, 0, nil)},
		"has run for long":   {c: started(running, 0, nil), wait: patience{up: settle, waited: settle}, ready: true},
		"done":               {c: started(container.State{}, 0, nil), ready: true},
		"done, with a check": {c: started(container.State{}, 0, health(container.Starting)), wait: patience{health: true}, ready: true},
		"failed":             {c: started(container.State{ExitCode: 7}, 0, nil), reason: "did not stay up: its command ended with status 7"},
		"starts again":       {c: started(container.State{Running: true, Restarting: true}, 0, nil), reason: "does not stay up: its command ended with status 0"},
		"was started again":  {c: started(running, 1, nil), reason: "does not stay up: the engine has had to restart it"},
		"not healthy yet":    {c: started(running, 0, health(container.Starting)), wait: patience{health: true, limit: minute, up: minute - 1, waited: minute - 1}},
		"healthy":            {c: started(running, 0, health(container.Healthy)), wait: patience{health: true}, ready: true},
		"unhealthy": {
			c: started(running, 0, health(container.Unhealthy, failing...)), wait: patience{health: true, limit: minute},
			reason: `became unhealthy; last check: "connection refused \x1b[2J"`,
		},
		"says nothing": {
			c: started(running, 0, health(container.Unhealthy, &container.HealthcheckResult{ExitCode: 3})), wait: patience{health: true, limit: minute},
			reason: "became unhealthy; its last check ended with status 3",
		},
		"never healthy": {
			c: started(running, 0, health(container.Starting, failing[0])), wait: patience{health: true, limit: minute, waited: minute},
			reason: `did not become healthy within 1m0s; last check: "fine"`,
		},
		"no check yet": {
			c: started(running, 0, health(container.Starting)), wait: patience{health: true, limit: minute, waited: minute},
			reason: "did not become healthy within 1m0s",
		},
		"was unhealthy before":           {c: started(running, 0, health(container.Unhealthy)), wait: patience{up: settle, waited: settle}, ready: true},
		"lives by its policy":            {c: always(started(restarting, 4, nil)), wait: patience{limit: minute, up: settle, waited: minute - 1}},
		"came up by its policy":          {c: always(started(running, 4, nil)), wait: patience{limit: minute, up: settle, waited: minute}, ready: true},
		"came up just now":               {c: always(started(running, 4, nil)), wait: patience{limit: minute, up: settle - 1, waited: minute - 1}},
		"became healthy by its policy":   {c: always(started(running, 4, health(container.Healthy))), wait: patience{health: true, limit: minute}, ready: true},
		"is not healthy, and restarting": {c: always(started(restarting, 4, health(container.Unhealthy))), wait: patience{health: true, limit: minute}},
		"its policy does not help": {
			c: always(started(restarting, 4, nil)), wait: patience{limit: minute, up: settle, waited: minute},
			reason: "did not stay up within 1m0s: the engine has restarted it 4 times",
		},
		"its policy is at its end": {c: always(started(container.State{ExitCode: 3}, 4, nil)), wait: patience{limit: minute}, reason: "did not stay up: its command ended with status 3"},
		"done by its policy":       {c: always(started(container.State{}, 4, nil)), wait: patience{limit: minute}, ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.wait.settle = settle
			ready, reason := tc.wait.assess(tc.c)
			assert.Equal(t, ready, tc.ready)
			assert.Equal(t, reason, tc.reason)
		})
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
