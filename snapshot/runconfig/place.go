package runconfig

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// The fields of a configuration that are about a container's place: how others reach it, what it mounts, and when it
// is started again. A copy has others of its own, and gets these when it takes the place.
var (
	placeConfig = []string{"Hostname", "Domainname", "MacAddress", "ExposedPorts", "Volumes"}
	placeHost   = []string{
		"NetworkMode", "PortBindings", "PublishAllPorts", "Links", "ExtraHosts", "Dns", "DnsOptions", "DnsSearch",
		"Binds", "Mounts", "Tmpfs", "VolumesFrom", "VolumeDriver", "ContainerIDFile", "RestartPolicy", "AutoRemove",
	}
)

// TakePlace returns the configuration of a copy that takes the place of another container. What runs in it, and what it
// may use up, is the copy's. Its networks, ports, mounts, and the labels that make other programs act on it, are those of the place.
func TakePlace(copied, place labels.Config) (labels.Config, error) {
	config, err := withFields(copied.Config, place.Config, placeConfig)
	if err != nil {
		return labels.Config{}, err
	}
	if config, err = withActingLabels(config, place.Config); err != nil {
		return labels.Config{}, err
	}
	host, err := withFields(copied.HostConfig, place.HostConfig, placeHost)
	if err != nil {
		return labels.Config{}, err
	}
	peers := maps.Clone(copied.Peers)
	if peers == nil {
		peers = place.Peers
	} else {
		maps.Copy(peers, place.Peers)
	}
	return labels.Config{Config: config, HostConfig: host, NetworkingConfig: place.NetworkingConfig, Peers: peers, DefaultHostname: place.DefaultHostname}, nil
}

// withFields returns a JSON object with some of the fields of another one.
func withFields(object, from json.RawMessage, fields []string) (json.RawMessage, error) {
	var into, source map[string]json.RawMessage
	if err := unmarshalBoth(object, &into, from, &source); err != nil {
		return nil, err
	}
	for _, field := range fields {
		delete(into, field)
		if value, ok := source[field]; ok {
			into[field] = value
		}
	}
	return json.Marshal(into)
}

// withActingLabels returns a Config whose labels for other programs are those of another one.
func withActingLabels(config, from json.RawMessage) (json.RawMessage, error) {
	type labelled struct{ Labels map[string]string }
	var into map[string]json.RawMessage
	var own, place labelled
	if err := unmarshalBoth(config, &into, from, &place); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(config, &own); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	all := map[string]string{}
	maps.Copy(all, own.Labels)
	maps.DeleteFunc(all, func(key, _ string) bool { return isActing(key) })
	for key, value := range place.Labels {
		if isActing(key) {
			all[key] = value
		}
	}
	var err error
	if into["Labels"], err = json.Marshal(all); err != nil {
		return nil, err
	}
	return json.Marshal(into)
}

func unmarshalBoth(a json.RawMessage, intoA any, b json.RawMessage, intoB any) error {
	if err := json.Unmarshal(a, intoA); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if err := json.Unmarshal(b, intoB); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	return nil
}
