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

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"

	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// withReader is withTwo, and reader, which shares the volume and publishes a port.
func withReader(t *testing.T) *fakeDocker {
	t.Helper()
	docker := withTwo(t)
	reader := docker.create(t, "reader", &container.Config{}, &container.HostConfig{
		Binds: []string{"data:/data"}, PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}},
	})
	assert.NilError(t, docker.ContainerStart(t.Context(), reader.id, container.StartOptions{}))
	docker.forgetCalls()
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
	later := map[string]func(*testing.T, *fakeDocker) error{
		"create": func(t *testing.T, docker *fakeDocker) error {
			_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
			return err
		},
		"create of the other": func(t *testing.T, docker *fakeDocker) error {
			_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "reader"}, nil)
			return err
		},
		"restore in place": func(t *testing.T, docker *fakeDocker) error {
			_, err := engineOf(docker).Replace(t.Context(), stopOthers(), nil)
			return err
		},
		"recover": func(t *testing.T, docker *fakeDocker) error {
			done, err := engineOf(docker).Recover(t.Context(), "web", nil)
			assert.Equal(t, len(done), 1)
			return err
		},
		"guard": func(t *testing.T, docker *fakeDocker) error {
			return engineOf(docker).Settle(t.Context(), "web", nil)
		},
	}
	for name, next := range later {
		for _, rolledBack := range []bool{false, true} {
			t.Run(map[bool]string{true: "rolled back, ", false: "done, "}[rolledBack]+name, func(t *testing.T) {
				docker := withReader(t)
				old := docker.findContainer("web").id
				docker.before("ContainerCreate web", 0, func() {
					docker.hostPorts["8080"] = true
					if rolledBack {
						docker.fault = fault{at: len(docker.calls) + 1, kind: faultRefuse}
					}
				})
				e, told := engineOf(docker), false
				e.watchedBy(func(context.Context, dockerop.Watched) (func(), error) { return func() { told = true }, nil })
				var got events
				replaced, err := e.Replace(t.Context(), stopOthers(), got.progress)
				assert.Assert(t, !told)
				if rolledBack {
					assert.ErrorContains(t, err, "everything was put back")
					_, ok := errors.AsType[*replace.NotStartedError](err)
					assert.Assert(t, ok, "%v", err)
					assert.Equal(t, docker.findContainer("web").id, old)
				} else {
					assert.NilError(t, err)
					assert.Assert(t, replaced.Incomplete)
					assert.Assert(t, is.Contains(strings.Join(got.warnings(), "\n"), "container reader, which was stopped for its volumes, could not be started again"))
					assertReplaced(t, docker, old)
				}
				assert.Equal(t, docker.findContainer("reader").state, "exited")

				docker.fault, docker.randomness = fault{}, 200
				if name == "recover" || name == "guard" { // the cause lasts
					err := engineOf(docker).Settle(t.Context(), "web", nil)
					assert.ErrorContains(t, err, "address already in use")
				} else { // which keeps nobody from work
					_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
					assert.NilError(t, err)
					docker.randomness = 250
				}
				docker.hostPorts["8080"] = false
				assert.NilError(t, next(t, docker))
				assert.Equal(t, docker.findContainer("reader").state, "running")
				assert.Assert(t, !strings.Contains(docker.world(), "container cua-snapshot"), docker.world())
			})
		}
	}
}

// The guard hears that all is done only if it is. Otherwise it goes on when the client has
// ended, with what the client could not do: without a connection that is all of it.
func TestTheGuardIsToldOnlyWhenAllIsDone(t *testing.T) {
	var told bool
	var old fakeContainer
	scene := func(t *testing.T) *fakeDocker {
		t.Helper()
		docker := withReader(t)
		told, old = false, *docker.findContainer("web")
		return docker
	}
	replace := func(ctx context.Context, e *Engine) error {
		e.watchedBy(func(context.Context, dockerop.Watched) (func(), error) { return func() { told = true }, nil })
		_, err := e.Replace(ctx, stopOthers(), nil)
		return err
	}
	withFaults(t, []faultKind{faultRefuse, faultLoseAnswer, faultCancelBefore, faultCancelAfter, faultDie}, scene, replace, func(t *testing.T, o outcome) {
		docker := o.docker
		wasTold := told
		docker.clientDies()
		docker.wait(time.Minute / 2)
		if !wasTold {
			assert.NilError(t, engineOf(docker).Settle(t.Context(), "web", nil), docker.world())
		}
		web := docker.findContainer("web")
		assert.Assert(t, web != nil, docker.world())
		assert.Equal(t, web.state+docker.findContainer("reader").state, "runningrunning", docker.world())
		if web.id == old.id {
			assert.Equal(t, docker.data(), "two")
		} else {
			assertReplaced(t, docker, old.id)
		}
		for _, c := range docker.containers {
			_, isJournal := c.config.Labels[pending.LabelJournal]
			assert.Assert(t, !isJournal, "%s\n%s", docker.world(), volumebackup.LockName(old.id))
		}
	})
}

func TestRecoverNamesTheContainerOfTheUser(t *testing.T) {
	docker := withTwo(t)
	web := docker.findContainer("web")
	web.state = "paused"
	docker.service.worker(volumebackup.LockName(web.id), map[string]string{
		volumebackup.LabelPurpose: "create 1", "cua.snapshot.worker.frozen": `["` + web.id + `"]`,
	}, nil, true).state = "exited"
	done, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err)
	assert.DeepEqual(t, done, []replace.Recovery{{Container: "web", Text: "an interrupted operation was cleaned up: create 1"}})
	assert.Equal(t, web.state, "running")
}
