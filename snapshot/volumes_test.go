package snapshot

import (
	"errors"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func TestRestoreRefusesAVolumeThatExistsAlready(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	snapshotOf(t, docker, capture.Options{Container: "web"})
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: "data-000001"})
	assert.NilError(t, err)
	before := docker.World()
	_, err = engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:latest"}, nil)
	assert.ErrorContains(t, err, "create volume data-000001: a volume of that name exists already")
	assert.Equal(t, docker.World(), before)
}

// The engine makes the directory of a volume before it writes down its labels.
func TestAVolumeThatTheEngineWasKilledOverIsRemoved(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	snapshotOf(t, docker, capture.Options{Container: "web"})
	before := docker.World()
	docker.Spoiled = "launch"
	unlabelled := 0
	docker.Before("VolumeInspect data-", 0, func() {
		for _, v := range docker.Volumes {
			if v.Labels[labels.KeyOperation] != "" {
				v.Labels = nil
				unlabelled++
			}
		}
	})
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:latest"}, nil)
	assert.ErrorContains(t, err, "injected")
	assert.Equal(t, unlabelled, 1)
	assert.Equal(t, docker.World(), before)
}

// A dry run fails for what the real restore would fail for.
func TestADryRunLooksForTheContentOfVolumes(t *testing.T) {
	docker := enginetest.New()
	service := docker.Service
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	snapshotOf(t, docker, capture.Options{Container: "web"})
	before := docker.World()
	dry := runconfig.RestoreOptions{Snapshot: "web:latest", DryRun: true}
	_, err := engineOf(docker).Restore(t.Context(), dry, nil)
	assert.NilError(t, err)
	clear(service.Archives)
	_, err = engineOf(docker).Restore(t.Context(), dry, nil)
	var problems *plan.ProblemsError
	assert.Assert(t, errors.As(err, &problems), "%v", err)
	assert.Equal(t, problems.Problems[0].Kind, plan.ProblemNoArchive)
	assert.Equal(t, docker.World(), before)
}
