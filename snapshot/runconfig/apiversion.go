package runconfig

import (
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/versions"
)

// AllEndpointsVersion is the first version whose create call takes several networks.
const AllEndpointsVersion = "1.44"

// CreatesAllEndpoints tells whether the create call of that version takes several networks.
func CreatesAllEndpoints(version string) bool {
	return versions.GreaterThanOrEqualTo(version, AllEndpointsVersion)
}

// FitAPI takes out what the client refuses to send to an engine of that API
// version, and returns its names.
func (sp *Spec) FitAPI(version string) []string {
	var dropped []string
	if CreatesAllEndpoints(version) {
		return nil
	}
	for _, endpoint := range sp.Endpoints {
		endpoint.MacAddress = "" // of those engines only Config.MacAddress was configured, this is reported
	}
	if check := sp.Config.Healthcheck; check != nil && check.StartInterval != 0 {
		withoutInterval := *check
		withoutInterval.StartInterval = 0
		sp.Config.Healthcheck = &withoutInterval
		dropped = append(dropped, "Config.Healthcheck.StartInterval")
	}
	for i := range sp.Host.Mounts {
		if options := sp.Host.Mounts[i].BindOptions; options != nil && options.ReadOnlyForceRecursive {
			relaxed := *options
			relaxed.ReadOnlyForceRecursive = false
			sp.Host.Mounts[i].BindOptions = &relaxed
			dropped = append(dropped, "HostConfig.Mounts.BindOptions.ReadOnlyForceRecursive")
		}
	}
	return dropped
}

// Networking is the create call's part about the given networks.
func (sp *Spec) Networking(names []string) *network.NetworkingConfig {
	if len(names) == 0 {
		return nil
	}
	endpoints := map[string]*network.EndpointSettings{}
	for _, name := range names {
		endpoints[name] = sp.Endpoints[name]
	}
	return &network.NetworkingConfig{EndpointsConfig: endpoints}
}
