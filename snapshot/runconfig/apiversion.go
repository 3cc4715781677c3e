package runconfig

import (
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/versions"
)

// allEndpointsVersion is the first API version whose create call takes several networks.
const allEndpointsVersion = "1.44"

// CreatesAllEndpoints tells whether the create call of an API version takes several networks.
func CreatesAllEndpoints(version string) bool {
	return versions.GreaterThanOrEqualTo(version, allEndpointsVersion)
}

// FitAPI removes the fields that the client refuses to send with that API version, and returns
// their names.
func (sp *Spec) FitAPI(version string) []string {
	var dropped []string
	if CreatesAllEndpoints(version) {
		return nil
	}
	for _, endpoint := range sp.Endpoints {
		endpoint.MacAddress = "" // these engines only report it here: the user can set Config.MacAddress
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

// Networking returns what the create call needs to connect the container to the named networks.
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
