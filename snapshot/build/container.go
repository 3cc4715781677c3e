package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/go-connections/nat"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// Container describes a container to make.
type Container struct {
	Spec    *runconfig.Spec
	Name    string
	Foreign bool // its configuration comes from another engine: warn of what this one does not know
}

// Make creates a container, connects it to its networks, and returns its ID. It does not start it.
// If something fails, the container is removed.
func (b *Builder) Make(ctx context.Context, r Container, p plan.Progress) (id string, err error) {
	rollback := dockerop.Rollback{Progress: p}
	defer func() { rollback.Unless(ctx, &err) }()
	p.Status("create", "creating container "+r.Name)
	names := r.Spec.NetworkNames()
	first := names
	if !runconfig.CreatesAllEndpoints(b.docker.ClientVersion()) && len(names) > 1 {
		first = names[:1]
	}
	created, err := b.docker.CreateContainer(ctx, &r.Spec.Config, &r.Spec.Host, r.Spec.Networking(first), r.Name)
	if err != nil {
		return "", fmt.Errorf("create container %s: %w", r.Name, err)
	}
	rollback.Add(func(ctx context.Context) error { return b.docker.RemoveContainer(ctx, created.ID) })
	for _, warning := range created.Warnings {
		p.Warn("create", warning)
	}
	for _, name := range names[len(first):] {
		if err := b.docker.NetworkConnect(ctx, name, created.ID, r.Spec.Endpoints[name]); err != nil {
			return "", fmt.Errorf("connect container %s to network %s: %w", r.Name, name, err)
		}
	}
	if r.Foreign {
		if err := b.warnDropped(ctx, created.ID, r.Spec, p); err != nil {
			return "", err
		}
	}
	return created.ID, nil
}

// Try makes a container as [Builder.Make] does, and removes it, to learn whether the engine accepts the configuration.
func (b *Builder) Try(ctx context.Context, r Container) error {
	id, err := b.Make(ctx, r, nil)
	if err != nil {
		return err
	}
	return errors.Join(b.tryAddresses(ctx, r, id), b.docker.RemoveContainer(context.WithoutCancel(ctx), id))
}

// tryAddresses connects a container again to the network that it was created in, if it has a fixed address there. Engine
// 20.10 checks the address when a container is connected or started, and not when it is created.
func (b *Builder) tryAddresses(ctx context.Context, r Container, id string) error {
	names := r.Spec.NetworkNames()
	if runconfig.CreatesAllEndpoints(b.docker.ClientVersion()) || len(names) == 0 || r.Spec.Endpoints[names[0]].IPAMConfig == nil {
		return nil
	}
	err := b.docker.NetworkDisconnect(ctx, names[0], id, true)
	if err == nil {
		err = b.docker.NetworkConnect(ctx, names[0], id, r.Spec.Endpoints[names[0]])
	}
	return dockerop.Describe(err, fmt.Sprintf("connect container %s to network %s", r.Name, names[0]))
}

// warnDropped warns of the fields that the engine did not take over. An engine ignores what it does
// not know.
func (b *Builder) warnDropped(ctx context.Context, id string, sp *runconfig.Spec, p plan.Progress) error {
	_, raw, err := b.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return fmt.Errorf("inspect new container: %w", err)
	}
	asked, err := json.Marshal(map[string]any{"Config": sp.Config, "HostConfig": sp.Host})
	if err != nil {
		return fmt.Errorf("compare configuration: %w", err)
	}
	lost, err := runconfig.MissingFields("", asked, raw)
	if err != nil {
		return fmt.Errorf("compare configuration: %w", err)
	}
	for _, field := range lost {
		p.Warn("create", "the engine does not know "+field[1:]+" and left it out")
	}
	return nil
}

// ReportPorts returns the ports that a container publishes. It warns of the ports in replaced, and
// says where they are published instead: the engine has chosen that when it started the container.
func (b *Builder) ReportPorts(ctx context.Context, id string, replaced plan.Plan, p plan.Progress) []Port {
	c, _, err := b.docker.ContainerInspectWithRaw(ctx, id, false)
	for _, step := range replaced {
		text := step.String()
		_, port, _ := strings.Cut(step.Target, plan.PortFor)
		if chosen := runconfig.ChosenPorts(c, nat.Port(port)); err == nil && len(chosen) > 0 {
			text = plan.ReplacedPort(step, "is published on "+strings.Join(chosen, ", ")+" instead")
		}
		p.Warn("start", text)
	}
	if err != nil || c.NetworkSettings == nil {
		return nil
	}
	var ports []Port
	for _, port := range slices.Sorted(maps.Keys(c.NetworkSettings.Ports)) {
		for _, at := range c.NetworkSettings.Ports[port] {
			ports = append(ports, Port{Container: string(port), HostIP: at.HostIP, HostPort: at.HostPort})
		}
	}
	return ports
}
