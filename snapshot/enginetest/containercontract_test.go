package enginetest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// contractWatch listens to an engine.
func contractWatch(t *testing.T, c contractEngine) *dockerop.ThawWatch {
	t.Helper()
	watch := dockerop.New(c, nil).WatchThaws(t.Context())
	t.Cleanup(watch.Stop)
	return watch
}

func createBehaviours() map[string]func(*testing.T, contractEngine) {
	create := func(t *testing.T, c contractEngine, config container.Config, host container.HostConfig) error {
		t.Helper()
		_, err := c.ContainerCreate(t.Context(), &config, &host, nil, nil, contractPrefix+"refused")
		return err
	}
	bind := func(source string) container.HostConfig {
		return container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeBind, Source: source, Target: "/probe"}}}
	}
	return map[string]func(*testing.T, contractEngine){
		"a missing image is a not-found error": func(t *testing.T, c contractEngine) {
			assert.Assert(t, cerrdefs.IsNotFound(create(t, c, container.Config{Image: noImage}, container.HostConfig{})))
		},
		"a bind's source is looked for before the image is": func(t *testing.T, c contractEngine) {
			err := create(t, c, container.Config{Image: noImage}, bind("/never/was/there"))
			assert.ErrorContains(t, err, "bind source path does not exist")
			assert.Assert(t, cerrdefs.IsNotFound(create(t, c, container.Config{Image: noImage}, bind("/etc"))))
		},
		"nothing is mounted at a relative path": func(t *testing.T, c contractEngine) {
			cover := container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeTmpfs, Target: "data"}}}
			assert.ErrorContains(t, create(t, c, container.Config{Image: "busybox"}, cover), "mount path must be absolute")
		},
		"a device can be probed like a bind's source": func(t *testing.T, c contractEngine) {
			assert.Assert(t, cerrdefs.IsNotFound(create(t, c, container.Config{Image: noImage}, bind("/dev/null"))))
		},
		"a taken name is a conflict": func(t *testing.T, c contractEngine) {
			c.container(t, "refused", &container.Config{}, &container.HostConfig{})
			err := create(t, c, container.Config{Image: "busybox"}, container.HostConfig{})
			assert.Assert(t, cerrdefs.IsConflict(err), "%v", err)
			err = c.ContainerRename(t.Context(), c.container(t, "other", &container.Config{}, &container.HostConfig{}), contractPrefix+"refused")
			assert.Assert(t, cerrdefs.IsConflict(err), "%v", err)
		},
		"a container inherits its image's labels, and keeps an empty one of its own": func(t *testing.T, c contractEngine) {
			img := c.image(t, "", "LABEL a=image", "LABEL b=image", "LABEL c=image")
			found := c.inspect(t, c.container(t, "c", &container.Config{Image: img, Labels: map[string]string{"b": "own", "c": ""}}, &container.HostConfig{}))
			assert.Equal(t, found.Config.Labels["a"], "image")
			assert.Equal(t, found.Config.Labels["b"], "own")
			blank, present := found.Config.Labels["c"]
			assert.Assert(t, present && blank == "")
		},
		"an entrypoint of one empty word means none, whatever the image has": func(t *testing.T, c contractEngine) {
			below := c.container(t, "below", &container.Config{}, &container.HostConfig{})
			img := c.commit(t, below, container.CommitOptions{Config: &container.Config{Entrypoint: []string{"/image"}, Cmd: []string{"image"}}})
			none := c.inspect(t, c.container(t, "none", &container.Config{Image: img.ID, Entrypoint: []string{""}, Cmd: []string{"own"}}, &container.HostConfig{}))
			assert.Equal(t, len(none.Config.Entrypoint), 0)
			assert.DeepEqual(t, []string(none.Config.Cmd), []string{"own"})
			inherited := c.inspect(t, c.container(t, "inherited", &container.Config{Image: img.ID, Cmd: []string{"own"}}, &container.HostConfig{}))
			assert.DeepEqual(t, []string(inherited.Config.Entrypoint), []string{"/image"})
		},
		"a variable without a value hides the image's": func(t *testing.T, c contractEngine) {
			below := c.container(t, "below", &container.Config{Env: []string{"A=1", "B=2"}}, &container.HostConfig{})
			img := c.commit(t, below, container.CommitOptions{})
			found := c.inspect(t, c.container(t, "c", &container.Config{Image: img.ID, Env: []string{"A"}}, &container.HostConfig{}))
			assert.Assert(t, !slices.Contains(found.Config.Env, "A=1"), "%v", found.Config.Env)
			assert.Assert(t, slices.Contains(found.Config.Env, "B=2"), "%v", found.Config.Env)
		},
		"a volume that exists already is handed out with its labels": func(t *testing.T, c contractEngine) {
			name := contractPrefix + "volume"
			made, err := c.VolumeCreate(t.Context(), volume.CreateOptions{Name: name, Labels: map[string]string{"made": "first"}})
			assert.NilError(t, err)
			c.cleanup(t, func(ctx context.Context) error { return c.VolumeRemove(ctx, name, true) })
			assert.Equal(t, made.Labels["made"], "first")
			again, err := c.VolumeCreate(t.Context(), volume.CreateOptions{Name: name, Labels: map[string]string{"made": "second"}})
			assert.NilError(t, err)
			assert.Equal(t, again.Labels["made"], "first")
			_, err = c.VolumeInspect(t.Context(), contractPrefix+"never")
			assert.Assert(t, cerrdefs.IsNotFound(err))
		},
		"volumes are listed by parts of their names": func(t *testing.T, c contractEngine) {
			for _, name := range []string{"one", "two", "three"} {
				_, err := c.VolumeCreate(t.Context(), volume.CreateOptions{Name: contractPrefix + name})
				assert.NilError(t, err)
				c.cleanup(t, func(ctx context.Context) error { return c.VolumeRemove(ctx, contractPrefix+name, true) })
			}
			list, err := c.VolumeList(t.Context(), volume.ListOptions{Filters: filters.NewArgs(
				filters.Arg("name", contractPrefix+"o"), filters.Arg("name", contractPrefix+"tw"),
			)})
			assert.NilError(t, err)
			var names []string
			for _, v := range list.Volumes {
				assert.Equal(t, len(v.Labels), 0)
				names = append(names, strings.TrimPrefix(v.Name, contractPrefix))
			}
			slices.Sort(names)
			assert.DeepEqual(t, names, []string{"one", "two"})
		},
		"anonymous volumes go with their container": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{Volumes: map[string]struct{}{"/data": {}}}, &container.HostConfig{})
			mounts := c.inspect(t, id).Mounts
			assert.Equal(t, len(mounts), 1)
			assert.Assert(t, runconfig.IsAnonymousName(mounts[0].Name))
			assert.NilError(t, c.forceRemoveContainer(t.Context(), id))
			_, err := c.VolumeInspect(t.Context(), mounts[0].Name)
			assert.Assert(t, cerrdefs.IsNotFound(err))
		},
		"a mount without a source is an anonymous volume": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{}, &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Target: "/data"}}})
			name := c.inspect(t, id).Mounts[0].Name
			assert.Assert(t, runconfig.IsAnonymousName(name))
			assert.NilError(t, c.ContainerRename(t.Context(), id, contractPrefix+"renamed"))
			assert.NilError(t, c.forceRemoveContainer(t.Context(), id))
			_, err := c.VolumeInspect(t.Context(), name)
			assert.Assert(t, cerrdefs.IsNotFound(err))
		},
		"an anonymous volume stays if another container mounts it by its name": func(t *testing.T, c contractEngine) {
			owner := c.container(t, "owner", &container.Config{Volumes: map[string]struct{}{"/data": {}}}, &container.HostConfig{})
			name := c.inspect(t, owner).Mounts[0].Name
			c.cleanup(t, func(ctx context.Context) error { return c.VolumeRemove(ctx, name, true) })
			other := c.container(t, "other", &container.Config{}, &container.HostConfig{Binds: []string{name + ":/data"}})
			for _, id := range []string{owner, other} {
				assert.NilError(t, c.forceRemoveContainer(t.Context(), id))
				_, err := c.VolumeInspect(t.Context(), name)
				assert.NilError(t, err)
			}
		},
	}
}

func runBehaviours() map[string]func(*testing.T, contractEngine) {
	return map[string]func(*testing.T, contractEngine){
		"a container is found by its name and by the beginning of its ID": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{}, &container.HostConfig{})
			assert.Equal(t, c.inspect(t, contractPrefix+"c").ID, id)
			assert.Equal(t, c.inspect(t, id[:12]).ID, id)
			_, _, err := c.ContainerInspectWithRaw(t.Context(), contractPrefix+"gone", true)
			assert.Assert(t, cerrdefs.IsNotFound(err))
		},
		"pausing what is paused and thawing what runs are errors that say so": func(t *testing.T, c contractEngine) {
			id := c.running(t, "c")
			assert.ErrorContains(t, c.ContainerUnpause(t.Context(), id), "is not paused") // the words that dockerop looks for
			assert.NilError(t, c.ContainerPause(t.Context(), id))
			assert.ErrorContains(t, c.ContainerPause(t.Context(), id), "is already paused")
			assert.Equal(t, c.state(t, id), dockerop.ContainerState(&container.State{Paused: true}))
			assert.NilError(t, c.ContainerUnpause(t.Context(), id))
		},
		"a thaw before the end of a commit is told before the commit, that of its own pause afterwards": func(t *testing.T, c contractEngine) {
			id := c.running(t, "c")
			watch := contractWatch(t, c)
			c.commit(t, id, container.CommitOptions{Comment: "first", Pause: true})
			assert.NilError(t, c.ContainerPause(t.Context(), id))
			// A busy engine 20.10 may note only now that the commit's pause has ended, and take the container for running.
			noFreezer := func(context.Context) (dockerop.Freezer, error) { return nil, errors.New("the test has no freezer") }
			_, err := dockerop.New(c, noFreezer).ThawOwn(t.Context(), []string{id})
			assert.NilError(t, err)
			c.commit(t, id, container.CommitOptions{Comment: "second"})
			first, err := watch.UntilCommit(t.Context(), "first")
			assert.NilError(t, err)
			assert.Assert(t, slices.Contains(first.Paused, id)) // others may use the engine, too
			assert.Assert(t, !slices.Contains(first.Ran, id))
			second, err := watch.UntilCommit(t.Context(), "second")
			assert.NilError(t, err)
			// One event of the first commit, and one of this thaw. Engine 20.10 may send one twice, because containerd reports it as well.
			own := slices.DeleteFunc(second.Ran, func(ran string) bool { return ran != id })
			assert.Assert(t, len(own) >= 2, "%v", own)
		},
		"a commit leaves a container paused that was so before": func(t *testing.T, c contractEngine) {
			id := c.running(t, "c")
			assert.NilError(t, c.ContainerPause(t.Context(), id))
			c.commit(t, id, container.CommitOptions{Pause: true})
			assert.Equal(t, c.state(t, id), labels.StatePaused)
		},
		"running containers are found by what they bind": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{}, &container.HostConfig{Binds: []string{"/etc:/there"}})
			assert.NilError(t, c.ContainerStart(t.Context(), id, container.StartOptions{}))
			for path, found := range map[string]bool{"/etc": true, "/": false, "/etc/never": false} {
				list, err := c.ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(filters.Arg("volume", path))})
				assert.NilError(t, err)
				assert.Equal(t, len(list) == 1, found, path)
			}
		},
		"a running container is not removed without force": func(t *testing.T, c contractEngine) {
			id := c.running(t, "c")
			assert.Assert(t, cerrdefs.IsConflict(c.ContainerRemove(t.Context(), id, container.RemoveOptions{})))
			assert.NilError(t, c.forceRemoveContainer(t.Context(), id))
			assert.Assert(t, cerrdefs.IsNotFound(c.forceRemoveContainer(t.Context(), id)))
		},
		"a start fails when another container holds the port, and says so": func(t *testing.T, c contractEngine) {
			publish := func() *container.HostConfig {
				return &container.HostConfig{PortBindings: nat.PortMap{"80/tcp": {{HostIP: "127.0.0.1", HostPort: "48193"}}}}
			}
			exposed := nat.PortSet{"80/tcp": {}}
			holder := c.container(t, "holder", &container.Config{ExposedPorts: exposed}, publish())
			late := c.container(t, "late", &container.Config{ExposedPorts: exposed}, publish())
			assert.NilError(t, c.ContainerStart(t.Context(), holder, container.StartOptions{}))
			err := c.ContainerStart(t.Context(), late, container.StartOptions{})
			assert.ErrorContains(t, err, "port is already allocated")
			assert.Equal(t, len((&runconfig.Spec{Host: *publish()}).FreeFailedPort(err, nil)), 1)
			list, err := c.ContainerList(t.Context(), container.ListOptions{All: true})
			assert.NilError(t, err)
			assert.Equal(t, runconfig.HeldPorts(list)[runconfig.HostPort{IP: netip.MustParseAddr("127.0.0.1"), Port: 48193, Proto: "tcp"}], contractPrefix+"holder")
		},
		"a container that removes itself does so, too, when it cannot be started": func(t *testing.T, c contractEngine) {
			publish := func() *container.HostConfig {
				return &container.HostConfig{AutoRemove: true, PortBindings: nat.PortMap{"80/tcp": {{HostIP: "127.0.0.1", HostPort: "48194"}}}}
			}
			exposed, volumes := nat.PortSet{"80/tcp": {}}, map[string]struct{}{"/data": {}}
			assert.NilError(t, c.ContainerStart(t.Context(), c.container(t, "holder", &container.Config{ExposedPorts: exposed}, publish()), container.StartOptions{}))
			late := c.container(t, "late", &container.Config{ExposedPorts: exposed, Volumes: volumes}, publish())
			anonymous := c.inspect(t, late).Mounts[0].Name
			assert.ErrorContains(t, c.ContainerStart(t.Context(), late, container.StartOptions{}), "port is already allocated")
			gone(t, func() error { _, _, err := c.ContainerInspectWithRaw(t.Context(), late, false); return err })
			gone(t, func() error { _, err := c.VolumeInspect(t.Context(), anonymous); return err })
		},
		"an endpoint goes by the network's ID if it is given, else by its name": func(t *testing.T, c contractEngine) {
			name := contractPrefix + "net"
			made, err := c.NetworkCreate(t.Context(), name, network.CreateOptions{})
			assert.NilError(t, err)
			c.cleanup(t, func(ctx context.Context) error { return c.NetworkRemove(ctx, name) })
			start := func(e *network.EndpointSettings) error {
				created, err := c.ContainerCreate(t.Context(), &container.Config{Image: "busybox", Cmd: []string{"sleep", "600"}},
					&container.HostConfig{NetworkMode: container.NetworkMode(name)},
					&network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{name: e}}, nil, contractPrefix+"c"+e.NetworkID)
				assert.NilError(t, err)
				c.cleanup(t, func(ctx context.Context) error { return c.forceRemoveContainer(ctx, created.ID) })
				return c.ContainerStart(t.Context(), created.ID, container.StartOptions{})
			}
			assert.ErrorContains(t, start(&network.EndpointSettings{NetworkID: strings.Repeat("0123456789abcdef", 4)}), "not found")
			assert.NilError(t, start(&network.EndpointSettings{}))
			assert.Equal(t, c.inspect(t, contractPrefix+"c").NetworkSettings.Networks[name].NetworkID, made.ID)
		},
		"running containers are found by the volumes that they mount": func(t *testing.T, c contractEngine) {
			name := contractPrefix + "shared"
			host := func() *container.HostConfig { return &container.HostConfig{Binds: []string{name + ":/data"}} }
			c.cleanup(t, func(ctx context.Context) error { return c.VolumeRemove(ctx, name, true) })
			running := c.container(t, "running", &container.Config{}, host())
			c.container(t, "stopped", &container.Config{}, host())
			assert.NilError(t, c.ContainerStart(t.Context(), running, container.StartOptions{}))
			list, err := c.ContainerList(t.Context(), container.ListOptions{
				Filters: filters.NewArgs(filters.Arg("status", "running"), filters.Arg("volume", name), filters.Arg("volume", contractPrefix+"never")),
			})
			assert.NilError(t, err)
			assert.Equal(t, len(list), 1)
			assert.Equal(t, list[0].ID, running)
			assert.Equal(t, list[0].Mounts[0].Name, name)
			assert.Assert(t, list[0].Mounts[0].RW)
		},
		"stopping a container that removes itself takes its anonymous volumes": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{Volumes: map[string]struct{}{"/data": {}}}, &container.HostConfig{AutoRemove: true})
			anonymous := c.inspect(t, id).Mounts[0].Name
			assert.NilError(t, c.ContainerStart(t.Context(), id, container.StartOptions{}))
			now := 0
			assert.NilError(t, c.ContainerStop(t.Context(), id, container.StopOptions{Timeout: &now}))
			gone(t, func() error { _, err := c.VolumeInspect(t.Context(), anonymous); return err })
			gone(t, func() error { _, _, err := c.ContainerInspectWithRaw(t.Context(), id, false); return err })
		},
	}
}
