package enginetest

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

// ContainerStart also removes a container made with --rm whose start fails.
func (f *Docker) ContainerStart(ctx context.Context, id string, _ container.StartOptions) error {
	return f.withContainer(ctx, "ContainerStart", id, func(c *FakeContainer) error {
		if c.State == "paused" {
			return fmt.Errorf("cannot start a paused container, try unpause instead: %w", cerrdefs.ErrConflict)
		}
		if c.State == "running" {
			return nil
		}
		f.StartedTwice = f.StartedTwice || c.startFailed
		if err := f.startable(c); err != nil {
			c.startFailed = true
			if c.Host.AutoRemove {
				f.Drop(c, true)
			}
			return err
		}
		f.Started(c)
		if f.OnStart != nil {
			f.OnStart(c)
		}
		return nil
	})
}

// Started makes a container run, and sends the event.
func (f *Docker) Started(c *FakeContainer) {
	if c.State != "running" {
		c.State, c.started = "running", f.Clock
		f.tell(eventtypes.ActionStart, c, "")
	}
}

func (f *Docker) startable(c *FakeContainer) error {
	if mode := c.Host.NetworkMode; mode.IsContainer() {
		peer := f.FindContainer(mode.ConnectedContainer())
		switch {
		case peer == nil:
			return fmt.Errorf("no such container: %s: %w", mode.ConnectedContainer(), cerrdefs.ErrNotFound)
		case peer.State != "running" && peer.State != "paused":
			return fmt.Errorf("cannot join network of a non running container: %s: %w", peer.ID, cerrdefs.ErrConflict)
		}
	}
	for name, e := range c.Endpoints {
		if f.Networks[name] == "" || f.Networks[name] != e.NetworkID {
			return fmt.Errorf("network %s not found: %w", name, cerrdefs.ErrNotFound)
		}
	}
	for _, wanted := range c.ports() {
		if f.HostPorts[fmt.Sprint(wanted.Port)] {
			return fmt.Errorf("listen tcp4 0.0.0.0:%d: bind: address already in use: %w", wanted.Port, cerrdefs.ErrInternal)
		}
		for _, other := range f.Containers {
			if other.State == "running" && slices.ContainsFunc(other.ports(), wanted.Holds) {
				return fmt.Errorf("bind for 0.0.0.0:%d failed: port is already allocated: %w", wanted.Port, cerrdefs.ErrInternal)
			}
		}
	}
	if f.StartRefused != nil && c.started.IsZero() {
		return f.StartRefused
	}
	return f.StartError
}

// ContainerRemove refuses to remove a running container without force.
func (f *Docker) ContainerRemove(ctx context.Context, id string, options container.RemoveOptions) error {
	return f.withContainer(ctx, "ContainerRemove", id, func(c *FakeContainer) error {
		if (c.State == "running" || c.State == "paused") && !options.Force {
			return fmt.Errorf("cannot remove container %q: container is running: %w", c.Name, cerrdefs.ErrConflict)
		}
		f.Drop(c, options.RemoveVolumes)
		return nil
	})
}

// End ends the container's process.
func (c *FakeContainer) End(at time.Time) { c.State, c.finished = "exited", at }

// Kill ends the process of a container, without a call that counts or can fail.
func (f *Docker) Kill(word string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.FindContainer(word).End(f.Clock)
}

// vanish removes a container, without a call that counts or can fail.
func (f *Docker) vanish(c *FakeContainer) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Drop(c, false)
}

// Drop removes a container and, if volumes is set, the anonymous volumes that were made with it and
// that no other container mounts.
func (f *Docker) Drop(c *FakeContainer, volumes bool) {
	f.Containers = slices.DeleteFunc(f.Containers, func(other *FakeContainer) bool { return other == c })
	if !volumes {
		return
	}
	f.Volumes = slices.DeleteFunc(f.Volumes, func(v *FakeVolume) bool {
		isUsed := slices.ContainsFunc(f.Containers, func(other *FakeContainer) bool { return other.mountsOneOf([]string{v.Name}) })
		return v.MadeWith == c.ID && !isUsed
	})
}

// ContainerPause fails for a container that is paused or does not run, in the words of an engine.
func (f *Docker) ContainerPause(ctx context.Context, id string) error {
	return f.withContainer(ctx, "ContainerPause", id, func(c *FakeContainer) error {
		switch c.State {
		case "running":
			f.SetPaused(c, true)
			return nil
		case "paused":
			return fmt.Errorf("container %s is already paused: %w", id, cerrdefs.ErrConflict)
		}
		return fmt.Errorf("container %s is not running: %w", id, cerrdefs.ErrConflict)
	})
}

// ContainerUnpause fails for a container that is not paused, in the words of an engine.
func (f *Docker) ContainerUnpause(ctx context.Context, id string) error {
	if err := f.awaitUnstuck(ctx, id); err != nil {
		return err
	}
	return f.withContainer(ctx, "ContainerUnpause", id, func(c *FakeContainer) error {
		if c.past {
			return fmt.Errorf("cannot unpause container %s: OCI runtime resume failed: container not paused: unknown", id)
		}
		if c.State != "paused" {
			return fmt.Errorf("container %s is not paused: %w", id, cerrdefs.ErrConflict)
		}
		f.SetPaused(c, false)
		return nil
	})
}

// SetPaused pauses or thaws a container, and sends the event.
func (f *Docker) SetPaused(c *FakeContainer, paused bool) {
	c.State = "running"
	action := eventtypes.ActionUnPause
	if paused {
		c.State, action = "paused", eventtypes.ActionPause
	}
	if paused && c.Begins {
		c.stuck = make(chan struct{})
	}
	f.tell(action, c, "")
}

// ContainerStop also removes a container made with --rm.
func (f *Docker) ContainerStop(ctx context.Context, id string, _ container.StopOptions) error {
	return f.withContainer(ctx, "ContainerStop", id, func(c *FakeContainer) error {
		if c.State != "running" && c.State != "paused" {
			return nil
		}
		c.End(f.Clock)
		if c.Host.AutoRemove {
			f.Drop(c, true)
		}
		return nil
	})
}

// ContainerRename refuses a name that is taken.
func (f *Docker) ContainerRename(ctx context.Context, id, name string) error {
	return f.withContainer(ctx, "ContainerRename", id, func(c *FakeContainer) error {
		if other := f.FindContainer(name); other != nil && other.Name == strings.TrimPrefix(name, "/") {
			return fmt.Errorf("conflict: the container name %q is already in use by container %q: %w", name, other.ID, cerrdefs.ErrConflict)
		}
		c.Name = strings.TrimPrefix(name, "/")
		return nil
	})
}

// ContainerUpdate only changes the restart policy.
func (f *Docker) ContainerUpdate(ctx context.Context, id string, config container.UpdateConfig) (container.UpdateResponse, error) {
	err := f.withContainer(ctx, "ContainerUpdate", id, func(c *FakeContainer) error {
		if config.RestartPolicy.Name != "" {
			c.Host.RestartPolicy = config.RestartPolicy
		}
		return nil
	})
	return container.UpdateResponse{}, err
}

// Restarted makes the container one that has ended, and was started again at a moment.
func (c *FakeContainer) Restarted(at time.Time) { c.finished, c.started = at, at }
