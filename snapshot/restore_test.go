package snapshot

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func restore1(t *testing.T, docker *enginetest.Docker, o runconfig.RestoreOptions) (build.Restored, []string) {
	t.Helper()
	var got enginetest.Events
	restored, err := engineOf(docker).Restore(t.Context(), o, got.Progress)
	assert.NilError(t, err)
	return restored, got.Warnings()
}

func TestRestoreMakesACopyBesideTheOriginal(t *testing.T) {
	docker, made := withSnapshots(t, "web:one")
	original := *docker.FindContainer("web")

	restored, warnings := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "one"})

	assert.Equal(t, restored.Name, "web-000001")
	assert.Assert(t, restored.Started)
	assert.Equal(t, len(warnings), 0)
	restored.Snapshot.Layers = nil // Create does not look at the image that it has made
	assert.DeepEqual(t, restored.Snapshot, made[0])
	assert.Equal(t, restored.Plan.String(), "create container web-000001 (from "+made[0].Ref()+")\nstart container web-000001\n")
	c := docker.FindContainer(restored.ContainerID)
	assert.Equal(t, c.Name, "web-000001")
	assert.Equal(t, c.State, "running")
	assert.Equal(t, c.Image, made[0].ImageID)
	assert.Equal(t, c.Files, original.Files)
	assert.Assert(t, reflect.DeepEqual(*docker.FindContainer("web"), original))
	phases := make([]string, len(restored.Timings))
	for i, timing := range restored.Timings {
		phases[i] = timing.Phase
		assert.Assert(t, timing.Duration > 0)
	}
	assert.DeepEqual(t, phases, []string{"check", "create", "total"})
}

// Whatever a run has overridden of its image, the copy has it, too.
func TestRestoreBringsBackTheConfiguration(t *testing.T) {
	timeout := 7
	tests := map[string]container.Config{
		"the image's defaults":   {},
		"another command":        {Cmd: []string{"debug"}},
		"another entrypoint":     {Entrypoint: []string{"/once"}},
		"entrypoint and command": {Entrypoint: []string{"/once"}, Cmd: []string{"now"}},
		"no entrypoint":          {Entrypoint: []string{""}, Cmd: []string{"sh", "-c", "a && b"}},
		"user and directory":     {User: "7:8", WorkingDir: "/tmp"},
		"environment":            {Env: []string{"A=run", "B=1", "HIDDEN"}},
		"health":                 {Healthcheck: &dockerspec.HealthcheckConfig{Test: []string{"CMD", "true"}, Retries: 3}},
		"no health":              {Healthcheck: &dockerspec.HealthcheckConfig{Test: []string{"NONE"}}},
		"stopping":               {StopSignal: "SIGUSR1", StopTimeout: &timeout},
		"host name":              {Hostname: "db", Domainname: "example.org"},
		"labels":                 {Labels: map[string]string{"a": "run", "empty": ""}},
		"ports and volumes":      {ExposedPorts: nat.PortSet{"81/udp": {}}},
		"a terminal":             {Tty: true, OpenStdin: true},
	}
	for name, config := range tests {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			docker.AddImage("app:latest", &container.Config{
				Entrypoint: []string{"/app"}, Cmd: []string{"serve"}, User: "app", WorkingDir: "/srv", Env: []string{"A=image", "HIDDEN=x"},
				Labels: map[string]string{"a": "image", "b": "image"}, ExposedPorts: nat.PortSet{"80/tcp": {}}, StopSignal: "SIGINT",
				Healthcheck: &dockerspec.HealthcheckConfig{Test: []string{"CMD", "check"}},
			})
			config.Image = "app"
			original := docker.Create(t, "web", &config, &container.HostConfig{
				Resources: container.Resources{Memory: 1 << 30}, RestartPolicy: container.RestartPolicy{Name: "always"}, ReadonlyRootfs: true,
			})
			snapshotOf(t, docker, capture.Options{Container: "web", Meta: map[string]string{"k": "v"}})

			restored, _ := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:latest"})

			want, have := enginetest.Clone(original.Config), enginetest.Clone(docker.FindContainer(restored.ContainerID).Config)
			assert.Equal(t, have.Image, restored.Snapshot.Ref())
			if want.Hostname == original.ID[:12] {
				want.Hostname = restored.ContainerID[:12]
			}
			for key, value := range have.Labels {
				if strings.HasPrefix(key, labels.Prefix) {
					assert.Assert(t, value == "" || key == labels.KeyVersion || key == labels.KeyRestoredFrom || key == labels.KeyRestoredAt || key == labels.KeyCopyOf, key)
					delete(have.Labels, key)
				}
			}
			want.Image, have.Image = "", ""
			assert.DeepEqual(t, have, want)
			assert.DeepEqual(t, docker.FindContainer(restored.ContainerID).Host, original.Host)
		})
	}
}

func TestRestoreStartsAsItWasOrAsAsked(t *testing.T) {
	for _, test := range []struct {
		state string
		how   runconfig.Start
		want  string
	}{
		{"running", runconfig.StartAsCaptured, "running"},
		{"paused", runconfig.StartAsCaptured, "running"},
		{"exited", runconfig.StartAsCaptured, "created"},
		{"created", runconfig.StartAsCaptured, "created"},
		{"exited", runconfig.StartAlways, "running"},
		{"running", runconfig.StartNever, "created"},
	} {
		docker := enginetest.New()
		docker.Run(t, "web").State = test.state
		snapshotOf(t, docker, capture.Options{Container: "web"})
		restored, _ := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:latest", Start: test.how})
		assert.Equal(t, docker.FindContainer(restored.ContainerID).State, test.want, "%v", test)
		assert.Equal(t, restored.Started, test.want == "running")
	}
}

func TestRestoreAppliesOverrides(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{Env: []string{"A=1", "B=2"}, Labels: map[string]string{"x": "1"}}, &container.HostConfig{})
	snapshotOf(t, docker, capture.Options{Container: "web"})
	restored, _ := restore1(t, docker, runconfig.RestoreOptions{
		Snapshot: "web:latest", Name: "copy", Env: []string{"A=9", "B"}, Labels: map[string]string{"x": "2", "y": "3"},
		Memory: new(int64(1 << 20)), NanoCPUs: new(int64(5)), Publish: nat.PortMap{"80/tcp": {{HostPort: "8080"}}}, Networks: []string{"host"},
	})
	c := docker.FindContainer("copy")
	assert.Equal(t, restored.ContainerID, c.ID)
	assert.Assert(t, slices.Contains(c.Config.Env, "A=9"))
	assert.Assert(t, !slices.ContainsFunc(c.Config.Env, func(e string) bool { return strings.HasPrefix(e, "B=") }), "%v", c.Config.Env)
	assert.Equal(t, c.Config.Labels["x"]+c.Config.Labels["y"], "23")
	assert.Equal(t, c.Host.Memory, int64(1<<20))
	assert.Equal(t, string(c.Host.NetworkMode), "host")
	assert.Equal(t, c.Host.PortBindings["80/tcp"][0].HostPort, "8080")
}

func TestRestoreConnectsEveryNetwork(t *testing.T) {
	for version, connects := range map[string]int{"1.51": 0, "1.43": 2} {
		docker := enginetest.New()
		for _, name := range []string{"a", "front", "z"} {
			_, err := docker.NetworkCreate(t.Context(), name, network.CreateOptions{})
			assert.NilError(t, err)
		}
		docker.Create(t, "web", &container.Config{}, &container.HostConfig{NetworkMode: "front"})
		for _, name := range []string{"z", "a"} {
			assert.NilError(t, docker.NetworkConnect(t.Context(), name, "web", &network.EndpointSettings{Aliases: []string{"alias"}, IPAddress: "10.0.0.2"}))
		}
		snapshotOf(t, docker, capture.Options{Container: "web"})
		for _, name := range []string{"a", "front", "z"} { // as docker compose down and up does
			_, err := docker.NetworkCreate(t.Context(), name, network.CreateOptions{})
			assert.NilError(t, err)
		}
		docker.APIVersion = version
		docker.ForgetCalls()

		restored, _ := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:latest", Start: runconfig.StartAlways})

		c := docker.FindContainer(restored.ContainerID)
		for _, name := range []string{"a", "front", "z"} {
			assert.DeepEqual(t, c.Endpoints[name], &network.EndpointSettings{NetworkID: docker.Networks[name]})
		}
		calls := slices.DeleteFunc(docker.Calls, func(call string) bool { return !strings.HasPrefix(call, "NetworkConnect") })
		assert.Equal(t, len(calls), connects, "%v", calls)
		assert.Equal(t, strings.Contains(restored.Plan.String(), "connect network a\nconnect network z\n"), connects > 0)
	}
}

func TestRestoreTriesAnotherPortOnANewContainer(t *testing.T) {
	docker := enginetest.New()
	publish := &container.HostConfig{PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}, "81/tcp": {{HostPort: "8081"}}, "82/tcp": {{HostPort: "8082"}}}}
	c := docker.Create(t, "web", &container.Config{}, publish)
	snapshotOf(t, docker, capture.Options{Container: "web"})
	holder := docker.Create(t, "holder", &container.Config{}, &container.HostConfig{PortBindings: nat.PortMap{"1/tcp": {{HostPort: "8081"}}}})
	holder.State = "running"
	docker.HostPorts["8080"], docker.HostPorts["8082"] = true, true

	restored, warnings := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:latest", Start: runconfig.StartAlways})

	assert.DeepEqual(t, docker.FindContainer(restored.ContainerID).Host.PortBindings, nat.PortMap{"80/tcp": {{}}, "81/tcp": {{}}, "82/tcp": {{}}})
	slices.Sort(warnings)
	assert.DeepEqual(t, warnings, []string{
		"port 8080 is taken by another program on the host: 80/tcp is published on 32768 instead",
		"port 8081 is taken by holder: 81/tcp is published on 32769 instead",
		"port 8082 is taken by another program on the host: 82/tcp is published on 32770 instead",
	})
	assert.Assert(t, !docker.StartedTwice)
	assert.Equal(t, len(docker.Containers), 3)
	assert.Equal(t, c.State, "created")
}

// Only a captured port may become another: one that the user names is meant.
func TestRestoreDoesNotReplaceAPortThatTheUserNames(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}}})
	snapshotOf(t, docker, capture.Options{Container: "web"})
	holder := docker.Create(t, "holder", &container.Config{}, &container.HostConfig{PortBindings: nat.PortMap{"1/tcp": {{HostPort: "8081"}}}})
	holder.State = "running"
	docker.HostPorts["8082"] = true
	before := docker.World()
	docker.ForgetCalls()
	publish := func(port string) runconfig.RestoreOptions {
		return runconfig.RestoreOptions{Snapshot: "web:latest", Name: "copy", Start: runconfig.StartAlways, Publish: nat.PortMap{"80/tcp": {{HostPort: port}}}}
	}

	_, err := engineOf(docker).Restore(t.Context(), publish("8081"), nil)
	var problems *plan.ProblemsError
	assert.Assert(t, errors.As(err, &problems), "%v", err)
	assert.DeepEqual(t, problems.Problems, []plan.Problem{{
		Kind: plan.ProblemPortTaken, Subject: "8081 for 80/tcp", Text: "port 8081 for 80/tcp is taken by holder",
	}})
	assert.Assert(t, !slices.Contains(docker.Calls, "ContainerCreate copy"))

	_, err = engineOf(docker).Restore(t.Context(), publish("8082"), nil)
	assert.ErrorContains(t, err, "start container copy: listen tcp4 0.0.0.0:8082: bind: address already in use")
	assert.Equal(t, docker.World(), before)

	asked := publish("8081")
	asked.Start = runconfig.StartNever // it may be free by then
	_, warnings := restore1(t, docker, asked)
	assert.Equal(t, len(warnings), 0)
	assert.Equal(t, docker.FindContainer("copy").Host.PortBindings["80/tcp"][0].HostPort, "8081")
}

// The engine itself removes a container of --rm that cannot be started.
func TestAFailedStartIsToldOnce(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/data": {}}}, &container.HostConfig{AutoRemove: true})
	snapshotOf(t, docker, capture.Options{Container: "web"})
	before := docker.World()
	docker.StartError = errors.New("exec: no such file")
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:latest", Name: "copy", Start: runconfig.StartAlways}, nil)
	assert.Error(t, err, "start container copy: exec: no such file")
	assert.Equal(t, docker.World(), before)
}

func TestRestoreSaysWhatItLeavesOutForTheNetworks(t *testing.T) {
	docker := enginetest.New()
	_, err := docker.NetworkCreate(t.Context(), "front", network.CreateOptions{})
	assert.NilError(t, err)
	c := docker.Create(t, "web", &container.Config{Hostname: "db"}, &container.HostConfig{NetworkMode: "front"})
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "connected"})
	c.Endpoints = map[string]*network.EndpointSettings{}
	engine := engineCounting(docker, 9)
	_, err = engine.Create(t.Context(), capture.Options{Container: "web", Name: "alone"}, nil)
	assert.NilError(t, err)
	c.Endpoints["front"] = docker.Endpoint("front", nil)

	restored, warnings := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:connected", Name: "copy"})
	assert.DeepEqual(t, warnings, []string{"leave out hostname db (container web answers to it in network front)"})
	assert.Equal(t, restored.Plan[0].String(), warnings[0])
	assert.Equal(t, docker.FindContainer("copy").Config.Hostname, restored.ContainerID[:12])

	_, warnings = restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:alone", Name: "second"})
	assert.DeepEqual(t, warnings, []string{"leave out network front (the container was connected to no network when it was captured)"})
	second := docker.FindContainer("second")
	assert.Equal(t, string(second.Host.NetworkMode), "none")
	assert.Equal(t, second.Config.Hostname, "db")

	docker.Drop(c, false)
	_, warnings = restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:connected", Name: "third"})
	assert.Equal(t, len(warnings), 0)
	assert.Equal(t, docker.FindContainer("third").Config.Hostname, "db")
}

func TestRestoreRemovesWhatDoesNotStart(t *testing.T) {
	docker, _ := withSnapshots(t, "web:one")
	before := docker.World()
	docker.StartError = errors.New("exec: no such file: port 8080")
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "one"}, nil)
	assert.ErrorContains(t, err, "start container web-000001: exec: no such file")
	assert.Equal(t, docker.World(), before)
	assert.Assert(t, !docker.StartedTwice)
}

// A copy that is waited for and does not come up is removed, and the end of its log is told. Without waiting it stays.
func TestRestoreRemovesACopyThatDoesNotComeUp(t *testing.T) {
	docker, _ := withSnapshots(t, "web:one")
	before := docker.World()
	docker.OnStart = func(c *enginetest.FakeContainer) {
		c.End(docker.Clock)
		c.ExitCode, c.Log = 3, "no such table\n"
	}
	o := runconfig.RestoreOptions{Snapshot: "one", Waiting: runconfig.Waiting{Wait: true, Settle: time.Second}}
	_, err := engineOf(docker).Restore(t.Context(), o, nil)
	down, ok := errors.AsType[*build.NotReadyError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Assert(t, down.Copy)
	assert.Equal(t, down.Error(), "container web-000001 did not stay up: its command ended with status 3\nthe last lines of its log:\n  no such table")
	assert.Equal(t, docker.World(), before)

	o.Wait = false
	_, err = engineOf(docker).Restore(t.Context(), o, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.FindContainer("web-000001").State, "exited")
}

func TestRestoreReportsEveryProblemBeforeItMakesAnything(t *testing.T) {
	docker := enginetest.New()
	docker.HostPaths["/srv"], docker.HostPaths["/dev/kvm"] = true, true
	_, err := docker.NetworkCreate(t.Context(), "front", network.CreateOptions{})
	assert.NilError(t, err)
	docker.Create(t, "peer", &container.Config{}, &container.HostConfig{})
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{
		NetworkMode: "front", IpcMode: "container:peer", Runtime: "kata", Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/srv", Target: "/srv"}},
		Resources: container.Resources{Devices: []container.DeviceMapping{{PathOnHost: "/dev/kvm"}}}, Privileged: true,
	})
	snapshotOf(t, docker, capture.Options{Container: "web"})
	delete(docker.HostPaths, "/srv")
	delete(docker.HostPaths, "/dev/kvm")
	delete(docker.Networks, "front")
	assert.NilError(t, docker.ContainerRemove(t.Context(), "peer", container.RemoveOptions{}))
	docker.About.ID = "engine-2"
	before := docker.World()

	_, err = engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:latest", Name: "web"}, nil)

	var problems *plan.ProblemsError
	assert.Assert(t, errors.As(err, &problems), "%v", err)
	kinds := make([]plan.ProblemKind, len(problems.Problems))
	for i, p := range problems.Problems {
		kinds[i] = p.Kind
	}
	assert.DeepEqual(t, kinds, []plan.ProblemKind{
		plan.ProblemNameTaken, plan.ProblemNoNetwork, plan.ProblemNoDevice, plan.ProblemNoBindSource, plan.ProblemNoRuntime, plan.ProblemNoContainer,
		plan.ProblemHostAccess, plan.ProblemHostAccess, plan.ProblemHostAccess, plan.ProblemHostAccess, plan.ProblemHostAccess, plan.ProblemHostAccess,
	})
	assert.Equal(t, docker.World(), before)

	restored, warnings := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:latest", SkipMissing: true, AllowHostAccess: true})
	assert.Equal(t, len(warnings), 5, "%v", warnings)
	assert.Equal(t, restored.Plan.String(), fmt.Sprintf(`leave out front (network front does not exist)
leave out /dev/kvm (device /dev/kvm does not exist on the engine's host)
leave out /srv (the source of bind mount /srv does not exist on the engine's host)
leave out kata (runtime kata is not known to the engine)
leave out peer (this container uses the shared memory of peer, which is gone)
create container %s (from %s)
`, restored.Name, restored.Snapshot.Ref()))
}

func TestRestoreOfAContainerThatIsGoneNamesTheOtherWay(t *testing.T) {
	docker, _ := withSnapshots(t, "web:one")
	notes := func(copied string) (texts []string) {
		_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web", Name: copied}, func(e plan.Event) {
			if e.Level == plan.LevelNote {
				texts = append(texts, e.Text)
			}
		})
		assert.NilError(t, err)
		return texts
	}
	assert.Equal(t, len(notes("one")), 0)
	assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
	assert.DeepEqual(t, notes("two"), []string{"container web is gone"})
	docker.FindImage("cua-snapshot/web:one").Config.Labels[labels.KeyEngineID] = "elsewhere"
	assert.Equal(t, len(notes("three")), 0) // it never was here
	docker.FindImage("cua-snapshot/web:one").Config.Labels[labels.KeyEngineID] = "engine-1"
	assert.Equal(t, len(notes("four")), 1)
	docker.Run(t, "web")
	assert.Equal(t, len(notes("five")), 0)
}
