package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// createErrors are those of both engines that could be provoked. docs/design.md has the table.
var createErrors = map[string]error{
	"no such image: cua-snapshot/web:1":                                                            cerrdefs.ErrNotFound,
	`Conflict. The container name "/web" is already in use`:                                        cerrdefs.ErrConflict,
	"invalid config for network back: invalid endpoint settings: no configured subnet contains it": cerrdefs.ErrInvalidArgument,
	`create data: error looking up volume plugin nodrv: plugin "nodrv" not found`:                  cerrdefs.ErrInternal,
	"conflict: volume name must be unique":                                                         cerrdefs.ErrConflict,
	"Unknown runtime specified norun":                                                              cerrdefs.ErrInvalidArgument,
	"Duplicate mount point: /data":                                                                 cerrdefs.ErrInvalidArgument,
	"No such container: peer":                                                                      cerrdefs.ErrNotFound,
	"could not get container for peer: No such container: peer":                                    cerrdefs.ErrInvalidArgument,
	"Minimum memory limit allowed is 6MB":                                                          cerrdefs.ErrInvalidArgument,
	"Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available":                       cerrdefs.ErrInvalidArgument,
	"Requested CPUs are not available - requested 998, available: 0-1":                             cerrdefs.ErrInvalidArgument,
	`invalid --security-opt 2: "nosuch=1"`:                                                         cerrdefs.ErrInvalidArgument,
	"--storage-opt is supported only for overlay over xfs with 'pquota' mount option":              cerrdefs.ErrInternal,
	`error looking up logging plugin nosuch: plugin "nosuch" not found`:                            cerrdefs.ErrInvalidArgument,
	"unknown log opt 'nosuch' for json-file log driver":                                            cerrdefs.ErrInvalidArgument,
	`invalid CapAdd: unknown capability: "CAP_NOSUCH"`:                                             cerrdefs.ErrInvalidArgument,
	"Cannot mkdir: /bin/sh is not a directory":                                                     cerrdefs.ErrInvalidArgument,
}

// withTwoRelated is [withTwo] with a second container, which uses the network of web.
func withTwoRelated(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := withTwo(t)
	web := docker.FindContainer("web")
	side := docker.Create(t, "side", &container.Config{}, &container.HostConfig{NetworkMode: container.NetworkMode("container:" + web.ID)})
	assert.NilError(t, docker.ContainerStart(t.Context(), side.ID, container.StartOptions{}))
	snapshotOf(t, docker, capture.Options{Container: "side", Name: "one"})
	docker.ForgetCalls()
	return docker
}

// stops are the calls of an engine that stop a container, or rename it.
func stops(docker *enginetest.Docker) []string {
	return slices.DeleteFunc(slices.Clone(docker.Calls), func(call string) bool {
		return !strings.HasPrefix(call, "ContainerStop") && !strings.HasPrefix(call, "ContainerRename")
	})
}

func TestReplaceFindsCreateErrorsBeforeItStops(t *testing.T) {
	t.Parallel()
	for message, class := range createErrors {
		t.Run(message, func(t *testing.T) {
			docker := withTwoRelated(t)
			before := docker.World()
			docker.CreateError = fmt.Errorf("%s: %w", message, class)
			side := replaceOptions()
			side.Snapshot = "side:one"
			for _, all := range [][]replace.Options{{replaceOptions(), side}, {side}} {
				_, err := engineOf(docker).ReplaceTogether(t.Context(), all, nil)
				assert.ErrorContains(t, err, "Nothing was stopped")
				assert.ErrorContains(t, err, message)
				assert.Equal(t, docker.World(), before)
				assert.DeepEqual(t, stops(docker), []string{})
			}
		})
	}
}

// An engine before 25 connects further networks after the create call, and checks a fixed address only then.
func TestReplaceFindsConnectErrorsBeforeItStops(t *testing.T) {
	t.Parallel()
	docker := enginetest.New()
	docker.APIVersion = "1.41"
	for _, name := range []string{"back", "front"} {
		_, err := docker.NetworkCreate(t.Context(), name, network.CreateOptions{})
		assert.NilError(t, err)
	}
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{NetworkMode: "back"})
	web.Endpoints["back"].IPAMConfig = &network.EndpointIPAMConfig{LinkLocalIPs: []string{"169.254.8.8"}}
	web.Endpoints["front"] = docker.Endpoint("front", nil)
	assert.NilError(t, docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	before := docker.World()
	for _, name := range []string{"front", "back"} {
		docker.ForgetCalls()
		docker.Refused = []string{"NetworkConnect " + name}
		_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
		assert.ErrorContains(t, err, "to network "+name+": injected")
		assert.ErrorContains(t, err, "Nothing was stopped")
		assert.Equal(t, docker.World(), before)
		assert.DeepEqual(t, stops(docker), []string{})
	}
	docker.Refused = nil
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.NilError(t, err)
	assert.Assert(t, docker.FindContainer("web").ID != web.ID)
}

// Start errors that follow from what there is on the engine are found before. The others are rolled back.
func TestReplaceSurvivesStartErrors(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"Address already in use", "network back not found", "driver failed programming external connectivity on endpoint web",
		"error gathering device information while adding custom device", "unable to find user nosuch: no matching entries in passwd file",
		"failed to initialize logging driver: dial tcp 127.0.0.1:1: connect: connection refused", `invalid tmpfs option ["nosuch"]`,
		"failed to mount local volume: no such device", "non-shareable IPC (hint: use IpcMode:shareable for the donor container)",
		"could not select device driver with capabilities: [[gpu]]", "OCI runtime create failed: exec: /no/such: no such file or directory",
	} {
		t.Run(message, func(t *testing.T) {
			docker := withTwo(t)
			old := docker.FindContainer("web")
			docker.StartRefused = fmt.Errorf("%s: %w", message, cerrdefs.ErrInternal)
			_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
			assert.ErrorContains(t, err, "start container web: "+message)
			web := docker.FindContainer("web")
			assert.Equal(t, web.ID+" "+web.State+" "+web.Files+" "+docker.Data(), old.ID+" running two two")
		})
	}
}

func TestReplaceFindsStartErrorsThatItCanForesee(t *testing.T) {
	t.Parallel()
	for kind, spoil := range map[plan.ProblemKind]func(*testing.T, *enginetest.Docker){
		plan.ProblemNoNetwork: func(_ *testing.T, docker *enginetest.Docker) { delete(docker.Networks, "back") },
		plan.ProblemNoDevice:  func(_ *testing.T, docker *enginetest.Docker) { delete(docker.HostPaths, "/dev/null") },
		plan.ProblemPortTaken: func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			docker.Kill("web")
			docker.Create(t, "other", &container.Config{}, &container.HostConfig{PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}}})
			assert.NilError(t, docker.ContainerStart(t.Context(), "other", container.StartOptions{}))
		},
		plan.ProblemNoContainer: func(_ *testing.T, docker *enginetest.Docker) { docker.Kill("peer") },
	} {
		t.Run(string(kind), func(t *testing.T) {
			docker := enginetest.New()
			_, err := docker.NetworkCreate(t.Context(), "back", network.CreateOptions{})
			assert.NilError(t, err)
			docker.Run(t, "peer")
			web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{
				NetworkMode: "back", PidMode: "container:peer", PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}},
				Resources: container.Resources{Devices: []container.DeviceMapping{{PathOnHost: "/dev/null", PathInContainer: "/dev/x"}}},
			})
			assert.NilError(t, docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
			spoil(t, docker)
			before := docker.World()
			docker.ForgetCalls()
			_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
			problems, ok := errors.AsType[*plan.ProblemsError](err)
			assert.Assert(t, ok, "%v", err)
			assert.Equal(t, problems.Problems[0].Kind, kind)
			assert.Equal(t, docker.World(), before)
			assert.DeepEqual(t, stops(docker), []string{})
		})
	}
}
