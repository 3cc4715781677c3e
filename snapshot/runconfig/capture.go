package runconfig

import (
	"encoding/json"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Subpath returns the part of a volume that the mount at destination shows. It is empty if it shows
// all.
func Subpath(c container.InspectResponse, destination string) string {
	if c.HostConfig == nil {
		return ""
	}
	for _, m := range c.HostConfig.Mounts {
		if isAt(m.Target, destination) && m.VolumeOptions != nil {
			return m.VolumeOptions.Subpath
		}
	}
	return ""
}

// Capture returns the configuration in the engine's answer to an inspect call, as it is. It leaves
// out our own labels: a restored container inherits those of its image, and every snapshot of it
// would hold all the older ones. Labels with policies stay, because users set them.
func Capture(inspect []byte) (labels.Config, error) {
	var answer struct {
		ID              string `json:"Id"`
		Config          map[string]json.RawMessage
		HostConfig      json.RawMessage
		NetworkSettings struct{ Networks json.RawMessage }
	}
	if err := json.Unmarshal(inspect, &answer); err != nil {
		return labels.Config{}, err
	}
	var own map[string]string
	var hostname string
	if raw, ok := answer.Config["Hostname"]; ok {
		if err := json.Unmarshal(raw, &hostname); err != nil {
			return labels.Config{}, err
		}
	}
	if raw, ok := answer.Config["Labels"]; ok {
		if err := json.Unmarshal(raw, &own); err != nil {
			return labels.Config{}, err
		}
		stripped, err := json.Marshal(labels.Users(own))
		if err != nil {
			return labels.Config{}, err
		}
		answer.Config["Labels"] = stripped
	}
	config, err := json.Marshal(answer.Config)
	if err != nil {
		return labels.Config{}, err
	}
	networking, err := json.Marshal(map[string]json.RawMessage{"EndpointsConfig": answer.NetworkSettings.Networks})
	if err != nil {
		return labels.Config{}, err
	}
	isDefault := hostname != "" && (hostname == dockerop.Shorten(answer.ID) || hostname == own[labels.KeyHostname])
	return labels.Config{Config: config, HostConfig: answer.HostConfig, NetworkingConfig: networking, DefaultHostname: isDefault}, nil
}
