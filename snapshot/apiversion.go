package snapshot

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/versions"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// apiAllEndpoints is the first version whose create call takes several networks.
const apiAllEndpoints = "1.44"

func (e *Engine) createsAllEndpoints() bool {
	return versions.GreaterThanOrEqualTo(e.docker.ClientVersion(), apiAllEndpoints)
}

// fitAPI takes out what the client refuses to send to an engine of that API
// version, and returns its names.
func (sp *spec) fitAPI(version string) []string {
	var dropped []string
	if versions.GreaterThanOrEqualTo(version, apiAllEndpoints) {
		return nil
	}
	for _, endpoint := range sp.endpoints {
		endpoint.MacAddress = "" // of those engines only Config.MacAddress was configured, this is reported
	}
	if check := sp.config.Healthcheck; check != nil && check.StartInterval != 0 {
		withoutInterval := *check
		withoutInterval.StartInterval = 0
		sp.config.Healthcheck = &withoutInterval
		dropped = append(dropped, "Config.Healthcheck.StartInterval")
	}
	for i := range sp.host.Mounts {
		if options := sp.host.Mounts[i].BindOptions; options != nil && options.ReadOnlyForceRecursive {
			relaxed := *options
			relaxed.ReadOnlyForceRecursive = false
			sp.host.Mounts[i].BindOptions = &relaxed
			dropped = append(dropped, "HostConfig.Mounts.BindOptions.ReadOnlyForceRecursive")
		}
	}
	return dropped
}

// networking is the create call's part about the given networks.
func (sp *spec) networking(names []string) *dockerop.NetworkingConfig {
	if len(names) == 0 {
		return nil
	}
	endpoints := map[string]*network.EndpointSettings{}
	for _, name := range names {
		endpoints[name] = sp.endpoints[name]
	}
	return &dockerop.NetworkingConfig{EndpointsConfig: endpoints}
}

// warnDropped compares what was asked for with what the engine made of it. An
// engine ignores what it does not know.
func (e *Engine) warnDropped(ctx context.Context, id string, sp *spec, p plan.Progress) error {
	_, raw, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return fmt.Errorf("inspect new container: %w", err)
	}
	asked, err := json.Marshal(map[string]any{"Config": sp.config, "HostConfig": sp.host})
	if err != nil {
		return fmt.Errorf("compare configuration: %w", err)
	}
	lost, err := missingFields("", asked, raw)
	if err != nil {
		return fmt.Errorf("compare configuration: %w", err)
	}
	for _, field := range lost {
		p.Warn("create", "the engine does not know "+field[1:]+", it was left out")
	}
	return nil
}
