package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func TestCreateRecordsEverything(t *testing.T) {
	docker := enginetest.New()
	c := docker.Run(t, "Shop-DB")
	expires := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

	created, err := engineOf(docker).Create(t.Context(), capture.Options{
		Container: c.ID[:12], Name: "one", Description: "why", Tags: []string{"a", "b"}, Meta: map[string]string{"k": "v"},
		Trigger: labels.TriggerInterval, RunID: "run", StepID: "step", Group: "group", Expires: expires, Pinned: true,
	}, nil)
	assert.NilError(t, err)

	assert.Equal(t, created.Ref(), "cua-snapshot/shop-db--ecd6c612062c6a61:20260131-120001-000001")
	found, err := engineOf(docker).Resolve(t.Context(), "Shop-DB:one")
	assert.NilError(t, err)
	found.Layers = nil // Create does not look at the image that it has made
	assert.DeepEqual(t, found, created.Snapshot)
	want := labels.Record{
		ID: "20260131-120001-000001", Name: "one", Description: "why", Created: time.Date(2026, 1, 31, 12, 0, 1, 0, time.UTC),
		Tags: []string{"a", "b"}, Meta: map[string]string{"k": "v"}, Trigger: labels.TriggerInterval, RunID: "run", StepID: "step",
		Group: "group", Expires: expires, Pinned: true, EngineID: "engine-1", Platform: "linux/amd64", Size: int64(len(c.Files)),
		Container: labels.Container{ID: c.ID, Name: "Shop-DB", State: labels.StateRunning, Image: "busybox", ImageID: c.Image},
		Config:    found.Config, Seal: found.Seal,
	}
	assert.DeepEqual(t, found.Record, want)
	img := docker.FindImage(found.ImageID)
	assert.Equal(t, img.Files, c.Files)
	assert.Equal(t, img.Comment, "docker snapshot 20260131-120001-000001")
	assert.DeepEqual(t, c.Commits, []bool{true})
}

func TestCreateCanLeaveTheContainerRunningMeanwhile(t *testing.T) {
	docker := enginetest.New()
	c := docker.Run(t, "web")
	for _, o := range []capture.Options{{NoPause: true}, {Pause: capture.PauseNone}, {Pause: capture.PauseTarget}} {
		o.Container = "web"
		snapshotOf(t, docker, o)
	}
	assert.DeepEqual(t, c.Commits, []bool{false, false, true})
}

func TestCreateRecordsTheState(t *testing.T) {
	for state, want := range map[string]labels.State{
		"running": labels.StateRunning, "paused": labels.StatePaused, "exited": labels.StateExited, "created": labels.StateCreated,
	} {
		docker := enginetest.New()
		c := docker.Run(t, "web")
		c.State = state
		assert.Equal(t, snapshotOf(t, docker, capture.Options{Container: "web"}).Container.State, want)
		assert.Equal(t, c.State, state)
	}
	assert.Equal(t, dockerop.ContainerState(&container.State{Restarting: true, Status: "restarting"}), labels.StateRunning)
}

func TestCreateRefuses(t *testing.T) {
	tests := map[string]struct {
		options capture.Options
		want    string
	}{
		"no container":             {capture.Options{}, "container name cannot be empty"},
		"a container that is gone": {capture.Options{Container: "gone"}, "no such container: gone"},
		"a name with a slash":      {capture.Options{Container: "web", Name: "a/b"}, "invalid snapshot name"},
		"a name of 200 characters": {capture.Options{Container: "web", Name: strings.Repeat("n", 200)}, "invalid snapshot name"},
		"the name latest":          {capture.Options{Container: "web", Name: "latest"}, "always means the newest"},
		"an ID for a name":         {capture.Options{Container: "web", Name: "20260131-120001-000001"}, "reads like a snapshot ID"},
		"reuse of no name":         {capture.Options{Container: "web", Reuse: true}, "only a snapshot with a name can replace another one"},
		"a bad meta key":           {capture.Options{Container: "web", Meta: map[string]string{"a b": "c"}}, "meta: invalid key"},
		"a meta key without value": {capture.Options{Container: "web", Meta: map[string]string{"a": ""}}, "meta: a has no value"},
		"an unknown trigger":       {capture.Options{Container: "web", Trigger: "whim"}, "cua.snapshot.trigger"},
		"a volume it has not":      {capture.Options{Container: "web", Volumes: capture.VolumeChoice{Only: []string{"data"}}}, "the container mounts no volume data"},
		"a taken name":             {capture.Options{Container: "web", Name: "taken"}, "web:taken exists already"},
		"reuse of a pinned one":    {capture.Options{Container: "web", Name: "pinned", Reuse: true}, "is pinned"},
		"reuse of a user's image":  {capture.Options{Container: "web", Name: "mine", Reuse: true}, "web:mine exists already, and is not a snapshot"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			docker.Run(t, "web")
			docker.AddImage("cua-snapshot/web:mine", &container.Config{})
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "taken"})
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "pinned", Pinned: true})
			before := docker.World()

			_, err := engineOf(docker).Create(t.Context(), test.options, nil)

			assert.ErrorContains(t, err, test.want)
			assert.Equal(t, docker.World(), before)
		})
	}
}

func TestCreateGivesTheClassOfItsErrors(t *testing.T) {
	docker, _ := withSnapshots(t, "web:one")
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Name: "one"}, nil)
	assert.Assert(t, cerrdefs.IsAlreadyExists(err))
	_, err = engineOf(docker).Create(t.Context(), capture.Options{Container: "gone"}, nil)
	assert.Assert(t, cerrdefs.IsNotFound(err))
}

func TestReuseReplacesTheSnapshotOfThatName(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two")
	engine := engineCounting(docker, 50)

	created, err := engine.Create(t.Context(), capture.Options{Container: "web", Name: "one", Reuse: true}, nil)
	assert.NilError(t, err)

	assert.Equal(t, tagsOf(docker.World()), strings.Join([]string{
		"image " + docker.FindImage("busybox").ID[7:19] + " busybox:latest",
		"image " + made[1].ImageID[7:19] + " cua-snapshot/web:" + string(made[1].ID) + " cua-snapshot/web:two",
		"image " + created.ImageID[7:19] + " cua-snapshot/web:" + string(created.ID) + " cua-snapshot/web:latest cua-snapshot/web:one",
	}, "\n")+"\n")
	assert.Equal(t, created.Parent, made[1].ID)
}

func TestParentIsThePreviousSnapshotInTheLine(t *testing.T) {
	docker := enginetest.New()
	c := docker.Run(t, "web")
	first := snapshotOf(t, docker, capture.Options{Container: "web"})
	second := snapshotOf(t, docker, capture.Options{Container: "web"})
	assert.Equal(t, first.Parent, labels.ID(""))
	assert.Equal(t, second.Parent, first.ID)

	restored, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: string(first.ID), Name: "copy"}, nil)
	assert.NilError(t, err)
	assert.Equal(t, snapshotOf(t, docker, capture.Options{Container: restored.ContainerID}).Parent, first.ID)

	docker.Create(t, "plain", &container.Config{Image: second.Ref()}, &container.HostConfig{})
	assert.Equal(t, snapshotOf(t, docker, capture.Options{Container: "plain"}).Parent, second.ID)

	// Another container of the same name is another line.
	assert.NilError(t, docker.ContainerRemove(t.Context(), c.ID, container.RemoveOptions{Force: true}))
	docker.Run(t, "web")
	assert.Equal(t, snapshotOf(t, docker, capture.Options{Container: "web"}).Parent, labels.ID(""))
}

func TestCapturedConfigurationIsTheEnginesOwn(t *testing.T) {
	docker := enginetest.New()
	docker.FutureHost = map[string]any{"InventedLater": map[string]any{"x": 12345678901234567}}
	docker.Create(t, "web", &container.Config{
		Cmd:    []string{"sh", "-c", "a && b >c"},
		Labels: map[string]string{"own": "kept", "com.docker.compose.project": "shop", labels.KeyRestoredFrom: "x", labels.KeyID: ""},
	}, &container.HostConfig{Resources: container.Resources{Memory: 1 << 30}})

	s := snapshotOf(t, docker, capture.Options{Container: "web"})

	assert.DeepEqual(t, s.ContainerLabels(), map[string]string{"own": "kept", "com.docker.compose.project": "shop"})
	var host struct {
		Memory        int64
		InventedLater struct{ X json.Number }
	}
	assert.NilError(t, json.Unmarshal(s.Config.HostConfig, &host))
	assert.Equal(t, host.Memory, int64(1<<30))
	assert.Equal(t, host.InventedLater.X.String(), "12345678901234567")
}

// A program that selects images by label, to remove them or to route to them, must not find the snapshot.
func TestCommittedImageHasOnlyTheLabelsOfItsImage(t *testing.T) {
	docker := enginetest.New()
	docker.FindImage("busybox").Config.Labels = map[string]string{"from": "image", "changed": "image", "com.docker.compose.project": "shop"}
	docker.Create(t, "web", &container.Config{
		Labels: map[string]string{"from": "image", "changed": "container", "reap": "yes", "com.docker.compose.project": "shop"},
	}, &container.HostConfig{})

	s := snapshotOf(t, docker, capture.Options{Container: "web"})

	image := labels.Users(docker.FindImage(s.ImageID).Config.Labels)
	assert.DeepEqual(t, image, map[string]string{"from": "image", "changed": "image", "reap": "", "com.docker.compose.project": ""})
	assert.Equal(t, s.ContainerLabels()["changed"], "container")
	assert.Equal(t, s.ContainerLabels()["reap"], "yes")
}

func TestCaptureConfigRefusesWhatIsNotAnInspectAnswer(t *testing.T) {
	for _, raw := range []string{``, `[]`, `{"Config":{"Labels":7}}`, `{"Config":[]}`, `{"NetworkSettings":[]}`} {
		_, err := runconfig.Capture([]byte(raw))
		assert.Assert(t, err != nil, raw)
	}
	bare, err := runconfig.Capture([]byte(`{"Config":{"Image":"x"},"HostConfig":{"A":1}}`))
	assert.NilError(t, err)
	assert.Equal(t, string(bare.Config), `{"Image":"x"}`)
	assert.Equal(t, string(bare.NetworkingConfig), `{"EndpointsConfig":null}`)
}

// What a run has overridden is in the labels; the image has the defaults of the
// image below it, so that docker run of a snapshot does what docker run of that does.
func TestCommittedImageKeepsTheDefaultsApart(t *testing.T) {
	docker := enginetest.New()
	docker.AddImage("app:latest", &container.Config{
		Entrypoint: []string{"/app"}, Cmd: []string{"serve"}, User: "app", ExposedPorts: nat.PortSet{"80/tcp": {}}, Env: []string{"A=image"},
	})
	check := &dockerspec.HealthcheckConfig{Test: []string{"CMD", "once"}}
	docker.Create(t, "overridden", &container.Config{
		Image: "app", Entrypoint: []string{"/once"}, Cmd: []string{"debug"}, User: "root", WorkingDir: "/once", Healthcheck: check,
	}, &container.HostConfig{})
	docker.Create(t, "bare", &container.Config{Entrypoint: []string{"/once"}, User: "1000", Cmd: []string{"x"}}, &container.HostConfig{})

	img := docker.FindImage(snapshotOf(t, docker, capture.Options{Container: "overridden"}).ImageID).Config
	assert.DeepEqual(t, []string(img.Entrypoint), []string{"/app"})
	assert.DeepEqual(t, []string(img.Cmd), []string{"serve"})
	assert.Equal(t, img.User, "app")
	assert.Equal(t, img.WorkingDir, "/")
	assert.DeepEqual(t, img.Healthcheck.Test, []string{"NONE"})
	assert.DeepEqual(t, img.ExposedPorts, nat.PortSet{"80/tcp": {}})
	assert.DeepEqual(t, img.Env, []string{"A=image"})

	img = docker.FindImage(snapshotOf(t, docker, capture.Options{Container: "bare"}).ImageID).Config
	assert.Equal(t, len(img.Entrypoint), 0)
	assert.DeepEqual(t, []string(img.Cmd), []string{"sh"})
	assert.Equal(t, img.User, "0")
}

// What the worker finds wrong with the store's record of a volume is in the result. Only the snapshots that nobody has
// asked for check by themselves.
func TestCreateSaysThatTheStoreWasWrong(t *testing.T) {
	for trigger, automatic := range map[labels.Trigger]bool{"": false, labels.TriggerManual: false, labels.TriggerInterval: true} {
		docker := enginetest.New()
		docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
		docker.Service.Contradicted = 2
		part := 0.5
		created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Trigger: trigger, CheckFraction: &part}, nil)
		assert.NilError(t, err)
		assert.Assert(t, created.Contradicted && !created.Incomplete)
		asked := docker.Service.Asked[string(created.ID)]
		assert.Equal(t, asked.Automatic, automatic)
		assert.Equal(t, *asked.CheckFraction, part)
	}
}

func TestCreateWarnsOfVolumesThatAreNotCaptured(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{
		Binds: []string{"data:/data", "gone:/gone", "/etc:/host:ro"}, Tmpfs: map[string]string{"/tmp": ""},
	})
	// The engine itself refuses to remove a volume that is mounted.
	docker.Volumes = slices.DeleteFunc(docker.Volumes, func(v *enginetest.FakeVolume) bool { return v.Name == "gone" })
	var got enginetest.Events
	created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, got.Progress)
	assert.NilError(t, err)
	assert.DeepEqual(t, got.Warnings(), []string{
		"the data of volume gone (/gone) is not in the snapshot: the volume is gone",
	})
	assert.Assert(t, created.Incomplete)
	assert.DeepEqual(t, created.Mounts, []labels.Mount{
		{Type: "volume", Name: "data", Destination: "/data", Driver: "local", RW: true, Archive: created.Mounts[0].Archive},
		{Type: "volume", Name: "gone", Destination: "/gone", RW: true, Skipped: "the volume is gone"},
		{Type: "bind", Source: "/etc", Destination: "/host", Skipped: "bind mount: its content belongs to the host"},
		{Type: "tmpfs", Destination: "/tmp", RW: true, Skipped: "tmpfs: its content is in memory"},
	})
}

func TestFlattenKeepsFilesAndConfiguration(t *testing.T) {
	docker := enginetest.New()
	manyLayers(docker)
	docker.FindImage("busybox").Arch = "arm64"
	docker.FindImage("busybox").Config.Volumes = map[string]struct{}{"/data": {}}
	c := docker.Create(t, "web", &container.Config{Cmd: []string{"own"}, Labels: map[string]string{"a": "b"}}, &container.HostConfig{})
	plain := enginetest.New()
	plain.FindImage("busybox").Arch = "arm64"
	plain.FindImage("busybox").Config.Volumes = map[string]struct{}{"/data": {}}
	plain.Create(t, "web", &container.Config{Cmd: []string{"own"}, Labels: map[string]string{"a": "b"}}, &container.HostConfig{})
	volumes := len(docker.Volumes)
	var got enginetest.Events

	created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, got.Progress)
	assert.NilError(t, err)

	flat := docker.FindImage(created.ImageID)
	assert.Equal(t, flat.Files, c.Files)
	assert.Equal(t, flat.Arch, "arm64")
	assert.Assert(t, len(flat.Layers) <= 2)
	assert.Equal(t, len(docker.Containers), 1)
	assert.Equal(t, len(docker.Volumes), volumes)
	want := plain.FindImage(snapshotOf(t, plain, capture.Options{Container: "web"}).ImageID).Config
	have := enginetest.Clone(flat.Config)
	for _, key := range []string{labels.KeyConfig, labels.KeyContainerID, labels.KeyContainerImageID, labels.KeyMounts, labels.KeySeal} { // have IDs in them
		delete(want.Labels, key)
		delete(have.Labels, key)
	}
	assert.DeepEqual(t, have, want)
	flattened := slices.ContainsFunc(got.All, func(e plan.Event) bool { return e.Phase == "flatten" && e.Current == int64(len(c.Files)) })
	assert.Assert(t, flattened)

	_, err = removeOne(t, engineOf(docker), string(created.ID), removal.Options{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(docker.Images), 2, "%s", docker.World()) // busybox, and that of workers
}

// hangingDocker commits only once it is let go.
type hangingDocker struct {
	*enginetest.Docker
	release chan struct{}
}

func (h hangingDocker) ContainerCommit(ctx context.Context, id string, o container.CommitOptions) (container.CommitResponse, error) {
	<-h.release
	return h.Docker.ContainerCommit(ctx, id, o)
}

func TestACancelledCommitIsWaitedForAndItsImageRemoved(t *testing.T) {
	const patience = 20 * time.Second
	for name, late := range map[string]time.Duration{"in time": patience / 2, "too late": 2 * patience} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				docker := enginetest.New()
				docker.Run(t, "web")
				before := docker.World()
				hanging := hangingDocker{docker, make(chan struct{})}
				reason := errors.New("interrupted by the user")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Minute, func() { cancel(reason) })
				time.AfterFunc(time.Minute+late, func() { close(hanging.release) })
				started := time.Now()

				engine := engineThrough(docker, hanging)
				_, err := engine.Create(ctx, capture.Options{Container: "web"}, nil)

				assert.ErrorIs(t, err, reason)
				assert.Equal(t, time.Since(started), time.Minute+min(late, patience))
				synctest.Wait()
				if late < patience {
					assert.Equal(t, docker.World(), before)
				}
				<-hanging.release
			})
		})
	}
}
