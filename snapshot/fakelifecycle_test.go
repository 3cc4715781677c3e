package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
)

// ContainerStart also removes a container that was made to vanish when it ends,
// and does not even begin.
func (f *fakeDocker) ContainerStart(ctx context.Context, id string, _ container.StartOptions) error {
	return f.withContainer(ctx, "ContainerStart", id, func(c *fakeContainer) error {
		if c.state == "paused" {
			return fmt.Errorf("cannot start a paused container, try unpause instead: %w", cerrdefs.ErrConflict)
		}
		if c.state == "running" {
			return nil
		}
		f.startedTwice = f.startedTwice || c.startFailed
		if err := f.startable(c); err != nil {
			c.startFailed = true
			if c.host.AutoRemove {
				f.drop(c, true)
			}
			return err
		}
		f.started(c)
		if f.onStart != nil {
			f.onStart(c)
		}
		return nil
	})
}

// started is what a start makes of a container.
func (f *fakeDocker) started(c *fakeContainer) {
	if c.state != "running" {
		c.state = "running"
		f.tell(eventtypes.ActionStart, c, "")
	}
}

func (f *fakeDocker) startable(c *fakeContainer) error {
	for name, e := range c.endpoints {
		if f.networks[name] == "" || f.networks[name] != e.NetworkID {
			return fmt.Errorf("network %s not found: %w", name, cerrdefs.ErrNotFound)
		}
	}
	for _, wanted := range c.ports() {
		if f.hostPorts[fmt.Sprint(wanted.Port)] {
			return fmt.Errorf("listen tcp4 0.0.0.0:%d: bind: address already in use: %w", wanted.Port, cerrdefs.ErrInternal)
		}
		for _, other := range f.containers {
			if other.state == "running" && slices.ContainsFunc(other.ports(), wanted.Holds) {
				return fmt.Errorf("bind for 0.0.0.0:%d failed: port is already allocated: %w", wanted.Port, cerrdefs.ErrInternal)
			}
		}
	}
	return f.startError
}

func (f *fakeDocker) ContainerRemove(ctx context.Context, id string, options container.RemoveOptions) error {
	return f.withContainer(ctx, "ContainerRemove", id, func(c *fakeContainer) error {
		if (c.state == "running" || c.state == "paused") && !options.Force {
			return fmt.Errorf("cannot remove container %q: container is running: %w", c.name, cerrdefs.ErrConflict)
		}
		f.drop(c, options.RemoveVolumes)
		return nil
	})
}

// end is what is left of a container whose process has ended.
func (c *fakeContainer) end(at time.Time) { c.state, c.finished = "exited", at }

// kill ends a container's process, as seen by who does not go through the engine's API.
func (f *fakeDocker) kill(word string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.findContainer(word).end(f.clock)
}

// vanish removes a container, as seen by who does not go through the engine's API.
func (f *fakeDocker) vanish(c *fakeContainer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(c, false)
}

// drop removes a container, and with volumes those that were made with it and that no
// other container mounts.
func (f *fakeDocker) drop(c *fakeContainer, volumes bool) {
	f.containers = slices.DeleteFunc(f.containers, func(other *fakeContainer) bool { return other == c })
	if !volumes {
		return
	}
	f.volumes = slices.DeleteFunc(f.volumes, func(v *fakeVolume) bool {
		isUsed := slices.ContainsFunc(f.containers, func(other *fakeContainer) bool { return other.mountsOneOf([]string{v.name}) })
		return v.madeWith == c.id && !isUsed
	})
}

func (f *fakeDocker) ContainerPause(ctx context.Context, id string) error {
	return f.withContainer(ctx, "ContainerPause", id, func(c *fakeContainer) error {
		switch c.state {
		case "running":
			f.setPaused(c, true)
			return nil
		case "paused":
			return fmt.Errorf("container %s is already paused: %w", id, cerrdefs.ErrConflict)
		}
		return fmt.Errorf("container %s is not running: %w", id, cerrdefs.ErrConflict)
	})
}

func (f *fakeDocker) ContainerUnpause(ctx context.Context, id string) error {
	return f.withContainer(ctx, "ContainerUnpause", id, func(c *fakeContainer) error {
		if c.state != "paused" {
			return fmt.Errorf("container %s is not paused: %w", id, cerrdefs.ErrConflict)
		}
		f.setPaused(c, false)
		return nil
	})
}

// setPaused pauses or thaws a container, and tells who listens.
func (f *fakeDocker) setPaused(c *fakeContainer, paused bool) {
	c.state = "running"
	action := eventtypes.ActionUnPause
	if paused {
		c.state, action = "paused", eventtypes.ActionPause
	}
	f.tell(action, c, "")
}

// ContainerStop also removes a container that was made to vanish when it ends.
func (f *fakeDocker) ContainerStop(ctx context.Context, id string, _ container.StopOptions) error {
	return f.withContainer(ctx, "ContainerStop", id, func(c *fakeContainer) error {
		if c.state != "running" && c.state != "paused" {
			return nil
		}
		c.end(f.clock)
		if c.host.AutoRemove {
			f.drop(c, true)
		}
		return nil
	})
}

func (f *fakeDocker) ContainerRename(ctx context.Context, id, name string) error {
	return f.withContainer(ctx, "ContainerRename", id, func(c *fakeContainer) error {
		if other := f.findContainer(name); other != nil && other.name == strings.TrimPrefix(name, "/") {
			return fmt.Errorf("conflict: the container name %q is already in use by container %q: %w", name, other.id, cerrdefs.ErrConflict)
		}
		c.name = strings.TrimPrefix(name, "/")
		return nil
	})
}

func (f *fakeDocker) ContainerUpdate(ctx context.Context, id string, config container.UpdateConfig) (container.UpdateResponse, error) {
	err := f.withContainer(ctx, "ContainerUpdate", id, func(c *fakeContainer) error {
		if config.RestartPolicy.Name != "" {
			c.host.RestartPolicy = config.RestartPolicy
		}
		return nil
	})
	return container.UpdateResponse{}, err
}
