package dockerop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
)

// Endpoints says how a container is connected to each of its networks, by network name.
type Endpoints map[string]*network.EndpointSettings

// Reconnect makes sure that a stopped container can start in all its networks. Two things may
// prevent it. The container refers to a network by ID, so a network that was removed and made again
// under its name is lost to it. And a failed start may have disconnected the container from a
// network, without which the next start would succeed (moby#51758).
func (e *Engine) Reconnect(ctx context.Context, c container.InspectResponse, endpoints Endpoints) error {
	if len(endpoints) == 0 {
		return nil
	}
	networks, err := e.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return fmt.Errorf("list networks: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		now, has := networkNamed(networks, name), c.NetworkSettings.Networks[name]
		switch {
		case now == nil:
			err = errors.Join(err, fmt.Errorf("network %s of container %s does not exist any more: create it again", name, ContainerName(c)))
		case has == nil:
			err = errors.Join(err, e.connect(ctx, name, c, endpoints[name]))
		case has.NetworkID != "" && has.NetworkID != now.ID:
			err = errors.Join(err, e.disconnect(ctx, name, c), e.connect(ctx, name, c, endpoints[name]))
		}
	}
	return err
}

// networkNamed finds a network by its name. It returns nil if there is none.
func networkNamed(networks []network.Summary, name string) *network.Summary {
	at := slices.IndexFunc(networks, func(n network.Summary) bool { return n.Name == name })
	if at < 0 {
		return nil
	}
	return &networks[at]
}

func (e *Engine) connect(ctx context.Context, name string, c container.InspectResponse, endpoint *network.EndpointSettings) error {
	if err := e.NetworkConnect(ctx, name, c.ID, endpoint); err != nil {
		return fmt.Errorf("connect container %s to network %s again: %w", ContainerName(c), name, err)
	}
	return nil
}

func (e *Engine) disconnect(ctx context.Context, name string, c container.InspectResponse) error {
	err := e.NetworkDisconnect(ctx, name, c.ID, true)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("disconnect container %s from network %s, which was made again: %w", ContainerName(c), name, err)
	}
	return nil
}

// ReconnectAfter does what [Engine.Reconnect] does, right after a failed start, so that whoever
// starts the container next finds it connected. It does nothing if the container is gone.
func (e *Engine) ReconnectAfter(ctx context.Context, id string, endpoints Endpoints) error {
	c, err := e.InspectIfThere(ctx, id)
	if err != nil || c == nil {
		return err
	}
	return e.Reconnect(ctx, *c, endpoints)
}
