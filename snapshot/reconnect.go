package snapshot

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

// endpoints are what a container is connected to, by network.
type endpoints map[string]*network.EndpointSettings

// reconnect sees to it that a stopped container can start in all its networks. It
// holds on to their IDs, so one that was removed and made again under its name is
// another one to it; and a start that has failed may have taken it from a network,
// without which the next start would succeed (moby#51758).
func (e *Engine) reconnect(ctx context.Context, c container.InspectResponse, endpoints endpoints) error {
	if len(endpoints) == 0 {
		return nil
	}
	networks, err := e.docker.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return fmt.Errorf("list networks: %w", err)
	}
	around := surroundings{networks: networks}
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		now, has := around.network(name), c.NetworkSettings.Networks[name]
		switch {
		case now == nil:
			err = errors.Join(err, fmt.Errorf("network %s of container %s does not exist any more: create it again", name, containerName(c)))
		case has == nil:
			err = errors.Join(err, e.connect(ctx, name, c, endpoints[name]))
		case has.NetworkID != "" && has.NetworkID != now.ID:
			err = errors.Join(err, e.disconnect(ctx, name, c), e.connect(ctx, name, c, endpoints[name]))
		}
	}
	return err
}

func (e *Engine) connect(ctx context.Context, name string, c container.InspectResponse, endpoint *network.EndpointSettings) error {
	if err := e.docker.NetworkConnect(ctx, name, c.ID, endpoint); err != nil {
		return fmt.Errorf("connect container %s to network %s again: %w", containerName(c), name, err)
	}
	return nil
}

func (e *Engine) disconnect(ctx context.Context, name string, c container.InspectResponse) error {
	err := e.docker.NetworkDisconnect(ctx, name, c.ID, true)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("disconnect container %s from network %s, which is another one now: %w", containerName(c), name, err)
	}
	return nil
}

// reconnectAfter does so right after a start that has failed, for whoever starts
// the container next.
func (e *Engine) reconnectAfter(ctx context.Context, id string, endpoints endpoints) error {
	c, err := e.inspectIfThere(ctx, id)
	if err != nil || c == nil {
		return err
	}
	return e.reconnect(ctx, *c, endpoints)
}
