package runconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Spec is a configuration as the engine's create call takes it. A restore decodes a captured one,
// and changes it.
type Spec struct {
	Config          container.Config
	Host            container.HostConfig
	Endpoints       map[string]*network.EndpointSettings // by network name
	mounts          []labels.Mount                       // as captured
	defaultHostname bool                                 // an engine chose the host name
	names           map[string]string                    // by ID, of the containers whose namespaces the captured one shared
}

// Decode reads a captured configuration. lost are the fields that this program does not know and
// would lose.
func Decode(c labels.Config) (s Spec, lost []string, err error) {
	var networking network.NetworkingConfig
	parts := []struct {
		name string
		raw  json.RawMessage
		into any
	}{
		{"Config", c.Config, &s.Config},
		{"HostConfig", c.HostConfig, &s.Host},
		{"NetworkingConfig", c.NetworkingConfig, &networking},
	}
	for _, part := range parts {
		if len(part.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(part.raw, part.into); err != nil {
			return Spec{}, nil, fmt.Errorf("read captured %s: %w", part.name, err)
		}
		known, err := json.Marshal(part.into)
		if err != nil {
			return Spec{}, nil, fmt.Errorf("read captured %s: %w", part.name, err)
		}
		missing, err := MissingFields(part.name, part.raw, known)
		if err != nil {
			return Spec{}, nil, fmt.Errorf("read captured %s: %w", part.name, err)
		}
		lost = append(lost, missing...)
	}
	s.Endpoints, s.names, s.defaultHostname = networking.EndpointsConfig, c.Peers, c.DefaultHostname
	maps.DeleteFunc(s.Endpoints, func(_ string, e *network.EndpointSettings) bool { return e == nil })
	s.forgetNetworkIDs()
	s.keepNoEntrypoint()
	s.forgetOwnLabels()
	return s, lost, nil
}

// forgetOwnLabels drops the labels that only this program may set: by them it recognizes its
// workers and what they were doing.
func (sp *Spec) forgetOwnLabels() {
	sp.Config.Labels = labels.Users(sp.Config.Labels)
	for _, m := range sp.Host.Mounts {
		if m.VolumeOptions != nil {
			m.VolumeOptions.Labels = withoutOurs(m.VolumeOptions.Labels)
		}
	}
}

// withoutOurs returns a volume's labels without those of this program.
func withoutOurs(all map[string]string) map[string]string {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(key, _ string) bool { return strings.HasPrefix(key, labels.Prefix) })
	return kept
}

// BlankInherited sets to empty those of this program's labels that the container would inherit from
// its image.
func (sp *Spec) BlankInherited(image map[string]string) {
	for key := range image {
		if _, own := sp.Config.Labels[key]; !own && strings.HasPrefix(key, labels.Prefix) {
			sp.Config.Labels[key] = ""
		}
	}
}

// keepNoEntrypoint asks for an empty entrypoint if the container had none, because it was run with
// --entrypoint "". If the field is left out, the engine takes the image's entrypoint.
func (sp *Spec) keepNoEntrypoint() {
	if len(sp.Config.Entrypoint) == 0 {
		sp.Config.Entrypoint = []string{""}
	}
}

// forgetNetworkIDs keeps only the names of networks. A network that was made again, for instance by
// docker compose, has another ID; and an engine that gets both uses the ID.
func (sp *Spec) forgetNetworkIDs() {
	mode := string(sp.Host.NetworkMode)
	_, isName := sp.Endpoints[mode]
	for name, e := range sp.Endpoints {
		if !isName && len(mode) >= dockerop.ShortID && strings.HasPrefix(e.NetworkID, mode) {
			sp.Host.NetworkMode = container.NetworkMode(name)
		}
		e.NetworkID = ""
	}
}

// MissingFields lists the fields of the JSON object want that hold something
// and that have does not have, as dotted paths that begin with prefix.
func MissingFields(prefix string, want, have []byte) ([]string, error) {
	var w, h any
	if err := json.Unmarshal(want, &w); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(have, &h); err != nil {
		return nil, err
	}
	return missing(prefix, w, h), nil
}

func missing(path string, want, have any) []string {
	if isZero(want) {
		return nil
	}
	switch wanted := want.(type) {
	case map[string]any:
		held, _ := have.(map[string]any)
		return missingKeys(path, wanted, held)
	case []any:
		held, _ := have.([]any)
		if len(held) == len(wanted) {
			return missingItems(path, wanted, held)
		}
	}
	if isZero(have) {
		return []string{path}
	}
	return nil
}

func missingItems(path string, wanted, held []any) []string {
	var lost []string
	for i, item := range wanted {
		lost = append(lost, missing(fmt.Sprintf("%s[%d]", path, i), item, held[i])...)
	}
	return lost
}

func missingKeys(path string, wanted, held map[string]any) []string {
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		value, found := held[key]
		if !found { // Go's JSON takes field names in any case
			for k, v := range held {
				if strings.EqualFold(k, key) {
					value = v
				}
			}
		}
		lost = append(lost, missing(path+"."+key, wanted[key], value)...)
	}
	return lost
}

// isZero tells whether a JSON value says nothing.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case float64:
		return v == 0
	case string:
		return v == ""
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isZero(item) })
	case map[string]any:
		for _, item := range v {
			if !isZero(item) {
				return false
			}
		}
		return true
	}
	return false
}
