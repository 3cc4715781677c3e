package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// withReader is withTwo, and reader, which shares the volume and publishes a port.
func withReader(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := withTwo(t)
	reader := docker.Create(t, "reader", &container.Config{}, &container.HostConfig{
		Binds: []string{"data:/data"}, PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}},
	})
	assert.NilError(t, docker.ContainerStart(t.Context(), reader.ID, container.StartOptions{}))
	docker.ForgetCalls()
	return docker
}

func stopOthers() replace.Options {
	o := replaceOptions()
	o.StopOthers = true
	return o
}

// A container that was stopped for a restore in place and does not start again is not
// forgotten: neither when the restore succeeds nor when it is rolled back.
func TestAnotherThatDoesNotStartIsStartedLater(t *testing.T) {
	later := map[string]func(*testing.T, *enginetest.Docker) error{
		"create": func(t *testing.T, docker *enginetest.Docker) error {
			_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
			return err
		},
		"create of the other": func(t *testing.T, docker *enginetest.Docker) error {
			_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "reader"}, nil)
			return err
		},
		"restore in place": func(t *testing.T, docker *enginetest.Docker) error {
			_, err := engineOf(docker).Replace(t.Context(), stopOthers(), nil)
			return err
		},
		"recover": func(t *testing.T, docker *enginetest.Docker) error {
			done, err := engineOf(docker).Recover(t.Context(), "web", nil)
			assert.Equal(t, len(done), 1)
			return err
		},
		"guard": func(t *testing.T, docker *enginetest.Docker) error {
			return engineOf(docker).Settle(t.Context(), "web", nil)
		},
	}
	for name, next := range later {
		for _, rolledBack := range []bool{false, true} {
			t.Run(map[bool]string{true: "rolled back, ", false: "done, "}[rolledBack]+name, func(t *testing.T) {
				docker := withReader(t)
				old := docker.FindContainer("web").ID
				docker.Before("ContainerCreate web", 0, func() {
					docker.HostPorts["8080"] = true
					if rolledBack {
						docker.Fault = enginetest.Fault{At: len(docker.Calls) + 1, Kind: enginetest.FaultRefuse}
					}
				})
				told := false
				e := engineWatchedBy(docker, func(context.Context, dockerop.Watched) (func(), error) { return func() { told = true }, nil })
				var got enginetest.Events
				replaced, err := e.Replace(t.Context(), stopOthers(), got.Progress)
				assert.Assert(t, !told)
				if rolledBack {
					assert.ErrorContains(t, err, "everything was put back")
					_, ok := errors.AsType[*replace.NotStartedError](err)
					assert.Assert(t, ok, "%v", err)
					assert.Equal(t, docker.FindContainer("web").ID, old)
				} else {
					assert.NilError(t, err)
					assert.Assert(t, replaced.Incomplete)
					assert.Assert(t, is.Contains(strings.Join(got.Warnings(), "\n"), "container reader, which was stopped for its volumes, could not be started again"))
					assertReplaced(t, docker, old)
				}
				assert.Equal(t, docker.FindContainer("reader").State, "exited")

				docker.Fault, docker.Randomness = enginetest.Fault{}, 200
				if name == "recover" || name == "guard" { // the cause lasts
					err := engineOf(docker).Settle(t.Context(), "web", nil)
					assert.ErrorContains(t, err, "address already in use")
				} else { // which keeps nobody from work
					_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
					assert.NilError(t, err)
					docker.Randomness = 250
				}
				docker.HostPorts["8080"] = false
				assert.NilError(t, next(t, docker))
				assert.Equal(t, docker.FindContainer("reader").State, "running")
				assert.Assert(t, !strings.Contains(docker.World(), "container cua-snapshot"), docker.World())
			})
		}
	}
}

// The guard hears that all is done only if it is. Otherwise it goes on when the client has
// ended, with what the client could not do: without a connection that is all of it.
func TestTheGuardIsToldOnlyWhenAllIsDone(t *testing.T) {
	t.Parallel()
	var told bool
	var old enginetest.FakeContainer
	scene := func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := withReader(t)
		told, old = false, *docker.FindContainer("web")
		return docker
	}
	replace := func(ctx context.Context, docker *enginetest.Docker) error {
		e := engineWatchedBy(docker, func(context.Context, dockerop.Watched) (func(), error) { return func() { told = true }, nil })
		_, err := e.Replace(ctx, stopOthers(), nil)
		return err
	}
	enginetest.Faults(t, []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultLoseAnswer, enginetest.FaultCancelBefore, enginetest.FaultCancelAfter, enginetest.FaultDie}, scene, replace, func(t *testing.T, o enginetest.Outcome) {
		docker := o.Docker
		wasTold := told
		docker.ClientDies()
		docker.Wait(time.Minute / 2)
		if !wasTold {
			assert.NilError(t, engineOf(docker).Settle(t.Context(), "web", nil), docker.World())
		}
		web := docker.FindContainer("web")
		assert.Assert(t, web != nil, docker.World())
		assert.Equal(t, web.State+docker.FindContainer("reader").State, "runningrunning", docker.World())
		if web.ID == old.ID {
			assert.Equal(t, docker.Data(), "two")
		} else {
			assertReplaced(t, docker, old.ID)
		}
		for _, c := range docker.Containers {
			_, isJournal := c.Config.Labels[pending.LabelJournal]
			assert.Assert(t, !isJournal, "%s\n%s", docker.World(), volumebackup.LockName(old.ID))
		}
	})
}

func TestRecoverNamesTheContainerOfTheUser(t *testing.T) {
	docker := withTwo(t)
	web := docker.FindContainer("web")
	web.State = "paused"
	docker.Service.Worker(volumebackup.LockName(web.ID), map[string]string{
		volumebackup.LabelPurpose: "create 1", "cua.snapshot.worker.frozen": `["` + web.ID + `"]`,
	}, nil, true).State = "exited"
	done, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err)
	assert.DeepEqual(t, done, []replace.Recovery{{Container: "web", Text: "an interrupted operation was cleaned up: create 1"}})
	assert.Equal(t, web.State, "running")
}
