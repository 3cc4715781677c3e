package runconfig

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

func TestCreateLinks(t *testing.T) {
	assert.DeepEqual(t, createLinks([]string{"/db:/web/database", "/cache:/web/cache", "other:alias", "bare"}), []string{"db:database", "cache:cache", "other:alias", "bare"})
	assert.Assert(t, createLinks(nil) == nil)
	assert.Assert(t, createLinks([]string{}) == nil)
}

func TestOverrideNetworks(t *testing.T) {
	tests := map[string]struct {
		names, want []string
		mode        string
	}{
		"as captured":    {nil, []string{"old"}, "old"},
		"two":            {[]string{"b", "a"}, []string{"b", "a"}, "b"},
		"the bridge":     {[]string{"bridge"}, []string{"bridge"}, "bridge"},
		"the host's":     {[]string{"host"}, []string{}, "host"},
		"none":           {[]string{"none"}, []string{}, "none"},
		"of a container": {[]string{"container:x"}, []string{}, "container:x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := Spec{Host: container.HostConfig{NetworkMode: "old", PortBindings: nat.PortMap{"80/tcp": nil}}, Endpoints: map[string]*network.EndpointSettings{"old": {}}}
			sp.Override(RestoreOptions{Networks: test.names}, nil)
			assert.DeepEqual(t, append([]string{}, sp.NetworkNames()...), test.want)
			assert.Equal(t, string(sp.Host.NetworkMode), test.mode)
			assert.Equal(t, len(sp.Host.PortBindings) == 0, sp.Host.NetworkMode.IsContainer())
		})
	}
}

func TestNetworkNamesBeginWithTheOneOfTheMode(t *testing.T) {
	endpoints := map[string]*network.EndpointSettings{"b": {}, "a": {}, "bridge": {}, "c": {}}
	for mode, want := range map[string]string{
		"c": "c a b bridge", "a": "a b bridge c", "default": "bridge a b c", "bridge": "bridge a b c", "gone": "a b bridge c", "": "a b bridge c",
	} {
		sp := Spec{Host: container.HostConfig{NetworkMode: container.NetworkMode(mode)}, Endpoints: endpoints}
		assert.Equal(t, strings.Join(sp.NetworkNames(), " "), want, mode)
	}
}

// connected returns a configuration with that network mode and endpoints. Nil endpoints are
// unknown.
func connected(mode string, names []string) Spec {
	sp := Spec{Host: container.HostConfig{NetworkMode: container.NetworkMode(mode)}}
	if names != nil {
		sp.Endpoints = map[string]*network.EndpointSettings{}
	}
	for _, name := range names {
		sp.Endpoints[name] = &network.EndpointSettings{MacAddress: "02:42:00:00:00:01"}
	}
	return sp
}

func TestTheModeFollowsWhatTheContainerWasConnectedTo(t *testing.T) {
	tests := map[string]struct {
		mode  string
		names []string
		want  string // the mode, then the networks
		note  string
	}{
		"its main network":            {"front", []string{"back", "front"}, "front front back", ""},
		"the bridge":                  {"bridge", []string{"bridge"}, "bridge bridge", ""},
		"the bridge, by default":      {"default", []string{"bridge"}, "default bridge", ""},
		"another than its main one":   {"front", []string{"c", "back"}, "back back c", ""},
		"another than the bridge":     {"default", []string{"back"}, "back back", ""},
		"none any more":               {"front", []string{}, "none", "leave out network front (the container was connected to no network when it was captured)\n"},
		"not the bridge any more":     {"default", []string{}, "none", "leave out network default (the container was connected to no network when it was captured)\n"},
		"none from the beginning":     {"none", []string{"none"}, "none", ""},
		"none at all":                 {"none", []string{}, "none", ""},
		"one in spite of none":        {"none", []string{"back"}, "back back", ""},
		"the host's":                  {"host", []string{"host"}, "host", ""},
		"that of another container":   {"container:x", []string{}, "container:x", ""},
		"a configuration without any": {"front", nil, "front", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			copied := connected(test.mode, test.names)
			assert.Equal(t, copied.ForCopy(captured(), LabelsHarmless).String(), test.note)
			assert.Equal(t, strings.Join(append([]string{string(copied.Host.NetworkMode)}, copied.NetworkNames()...), " "), test.want)
			replaced := connected(test.mode, test.names)
			assert.Equal(t, replaced.InPlace(captured(), nil).String(), test.note)
			assert.Equal(t, strings.Join(append([]string{string(replaced.Host.NetworkMode)}, replaced.NetworkNames()...), " "), test.want)
		})
	}
}

// The address that the configuration names is one in the main network.
func TestInPlaceTakesNoAddressToAnotherNetwork(t *testing.T) {
	for mac, modes := range map[string]map[string]string{
		"":                  {"front": "", "gone": "02:42:00:00:00:01"},
		"02:42:00:00:00:01": {"front": "02:42:00:00:00:01", "gone": "02:42:00:00:00:01"},
	} {
		for mode, want := range modes {
			sp := connected(mode, []string{"front"})
			sp.Config.MacAddress = mac //nolint:staticcheck // SA1019: engines before 25 read it.
			sp.InPlace(captured(), nil)
			assert.Equal(t, sp.Endpoints["front"].MacAddress, want)
			assert.Equal(t, sp.Config.MacAddress != "", mac != "" && mode == "front") //nolint:staticcheck // SA1019: engines before 25 read it.
		}
	}
}

func TestLinksGoAlongToOtherNetworks(t *testing.T) {
	tests := map[string]struct {
		names  string
		legacy []string // what is left of those of the bridge
		linked string   // the network that has them all
		lost   string
	}{
		"a network":              {"n", nil, "n", ""},
		"networks":               {"n m", nil, "n", ""},
		"the bridge and another": {"bridge n", nil, "n", ""},
		"the bridge":             {"bridge", []string{"db:database"}, "", "leave out link cache:c (it cannot work in network bridge)\n"},
		"the host's":             {"host", nil, "", "leave out link db:database (it cannot work in network host)\nleave out link cache:c (it cannot work in network host)\n"},
		"none":                   {"none", nil, "", "leave out link db:database (it cannot work in network none)\nleave out link cache:c (it cannot work in network none)\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := connected("default", []string{"bridge", "back", "front"})
			sp.Host.Links = []string{"/db:/web/database"}
			sp.Endpoints["back"].Links, sp.Endpoints["front"].Links = []string{"cache:c"}, []string{"cache:c", "db:database"}
			sp.ForCopy(captured(), LabelsHarmless)
			lost := sp.Override(RestoreOptions{Networks: strings.Fields(test.names)}, nil)
			assert.DeepEqual(t, sp.Host.Links, test.legacy)
			for name, e := range sp.Endpoints {
				assert.Equal(t, strings.Join(e.Links, " ") == "db:database cache:c", name == test.linked, "%s %v", name, e.Links)
			}
			assert.Equal(t, lost.String(), test.lost)
		})
	}
}

func TestOtherNetworksLeaveNothingToSayOfThoseThatWere(t *testing.T) {
	sp := connected("front", []string{})
	assert.Equal(t, len(sp.Override(RestoreOptions{Networks: []string{"n"}}, plan.Plan{{Op: plan.OpLeaveOut, Target: "network front"}})), 0)
	kept := plan.Plan{{Op: plan.OpLeaveOut, Target: "network front"}}
	assert.DeepEqual(t, sp.Override(RestoreOptions{}, kept), kept)
}

func TestACopyYieldsTheHostname(t *testing.T) {
	original := labels.Container{ID: strings.Repeat("ab", 32), Name: "web"}
	there := func(id, name string, networks ...string) Surroundings {
		c := container.Summary{ID: id, Names: []string{"/" + name}, NetworkSettings: &container.NetworkSettingsSummary{Networks: map[string]*network.EndpointSettings{}}}
		for _, name := range networks {
			c.NetworkSettings.Networks[name] = &network.EndpointSettings{}
		}
		return Surroundings{
			Containers: []container.Summary{{ID: "1", Names: []string{"/peer"}}, c},
			Networks:   []network.Summary{{Name: "bridge", ID: "n1"}, {Name: "front", ID: "n2"}, {Name: "back", ID: "n3"}},
		}
	}
	tests := map[string]struct {
		around   Surroundings
		networks []string
		yields   bool
	}{
		"beside the original":                     {there(original.ID, "web", "front"), []string{"front"}, true},
		"under another name":                      {there(original.ID, "renamed", "front"), []string{"front"}, true},
		"beside what was restored in place":       {there("c", "web", "front"), []string{"front"}, true},
		"in one of its networks":                  {there(original.ID, "web", "back", "bridge"), []string{"back", "front"}, true},
		"in a network that is named by its ID":    {there(original.ID, "web", "front"), []string{"n2"}, true},
		"in another network":                      {there(original.ID, "web", "front"), []string{"back"}, false},
		"on the bridge, which has no names":       {there(original.ID, "web", "bridge"), []string{"bridge"}, false},
		"beside others":                           {there("c", "other", "front"), []string{"front"}, false},
		"in a network that is not there any more": {there(original.ID, "web", "gone"), []string{"gone"}, false},
		"nowhere": {there(original.ID, "web", "front"), []string{}, false},
		"where the engine tells nothing about it ": {Surroundings{Containers: []container.Summary{{ID: original.ID}}, Networks: []network.Summary{{Name: "front"}}}, []string{"front"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := connected("bridge", test.networks)
			sp.Config.Hostname, sp.Config.Domainname = "db", "example.org"
			plan := sp.YieldHostname(original, test.around)
			assert.Equal(t, sp.Config.Hostname == "", test.yields)
			assert.Equal(t, sp.Config.Domainname, "example.org")
			assert.Equal(t, len(plan) > 0, test.yields)
			if test.yields {
				assert.Assert(t, strings.HasPrefix(plan.String(), "leave out hostname db (container "), plan.String())
			}
			assert.Equal(t, len(sp.YieldHostname(original, test.around)) > 0, false)
		})
	}
}
