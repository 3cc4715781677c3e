package snapshot

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// What one run was told is in no image: neither of one that says the same
// things, nor of one that says nothing.
func TestCommitConfigSeparatesTheRun(t *testing.T) {
	image := dockerspec.HealthcheckConfig{Test: []string{"CMD", "image"}, Timeout: time.Second}
	tests := map[string]struct {
		image, run, want container.Config
	}{
		"a stop signal": {
			container.Config{},
			container.Config{StopSignal: "SIGUSR1"},
			container.Config{StopSignal: "SIGTERM"},
		},
		"a stop signal instead of the image's": {
			container.Config{StopSignal: "SIGINT"},
			container.Config{StopSignal: "SIGUSR1"},
			container.Config{StopSignal: "SIGINT"},
		},
		"a healthcheck": {
			container.Config{},
			container.Config{Healthcheck: &dockerspec.HealthcheckConfig{Test: []string{"CMD", "run"}, Interval: time.Hour}},
			container.Config{Healthcheck: &dockerspec.HealthcheckConfig{Test: []string{"NONE"}, Interval: 30 * time.Second}},
		},
		"every field of it": {
			container.Config{Healthcheck: &image},
			container.Config{Healthcheck: &dockerspec.HealthcheckConfig{
				Test: []string{"CMD", "run"}, Interval: 1, Timeout: 2, StartPeriod: 3, StartInterval: 4, Retries: 5,
			}},
			container.Config{Healthcheck: &dockerspec.HealthcheckConfig{
				Test: []string{"CMD", "image"}, Interval: 30 * time.Second, Timeout: time.Second,
				StartPeriod: time.Millisecond, StartInterval: 5 * time.Second, Retries: 3,
			}},
		},
		"no healthcheck": {
			container.Config{Healthcheck: &image},
			container.Config{Healthcheck: &dockerspec.HealthcheckConfig{Test: []string{"NONE"}}},
			container.Config{Healthcheck: &image},
		},
		"times for a healthcheck that there is not": {
			container.Config{},
			container.Config{Healthcheck: &dockerspec.HealthcheckConfig{Retries: 9}},
			container.Config{Healthcheck: &dockerspec.HealthcheckConfig{Retries: 3}},
		},
		"variables": {
			container.Config{Env: []string{"A=image", "B=image"}},
			container.Config{Env: []string{"A=run", "B=image", "C=run", "AB=run"}},
			container.Config{Env: []string{"A=image", "B=image", "C", "AB"}},
		},
		"user and directory": {
			container.Config{},
			container.Config{User: "7", WorkingDir: "/tmp"},
			container.Config{User: "0", WorkingDir: "/"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := enginetest.Clone(test.image)
			docker := enginetest.New()
			docker.AddImage("app:latest", enginetest.Clone(&test.image)).Config.Cmd = []string{"serve"}
			config := enginetest.Clone(test.run)
			config.Image = "app"
			docker.Create(t, "web", &config, &container.HostConfig{})

			made := docker.FindImage(snapshotOf(t, docker, capture.Options{Container: "web"}).ImageID).Config

			test.want.Cmd, test.want.Entrypoint, test.want.Labels = []string{"serve"}, []string{}, made.Labels
			assert.DeepEqual(t, *made, enginetest.Clone(test.want))
			assert.DeepEqual(t, test.image, before)
		})
	}
}
