package runconfig

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// A restore in place leaves --volumes-from as it is, so that container must exist, unless the
// volumes are named instead.
func TestVolumesFromAContainerThatIsGone(t *testing.T) {
	s := captured()
	s.Mounts = []labels.Mount{{Type: "volume", Name: "data", Destination: "/data", Archive: &labels.Archive{Entries: 2}}}
	old := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{ID: "1"}}
	sp := &Spec{Host: container.HostConfig{VolumesFrom: []string{"holder:ro"}}}
	sp.InPlace(s, &old)
	assert.DeepEqual(t, sp.Host.VolumesFrom, []string{"holder:ro"})
	holder := Surroundings{Containers: []container.Summary{{ID: "2", Names: []string{"/holder"}}}}
	assert.Equal(t, len(holder.Problems(sp, "web")), 0)

	problems := Surroundings{}.Problems(sp, "web")
	assert.Equal(t, len(problems), 1)
	assert.Equal(t, problems[0].Kind, plan.ProblemNoContainer)
	assert.Equal(t, problems[0].Subject, "holder")
	_, rest := sp.LeaveOut(problems)
	assert.Equal(t, len(rest), 0)
	assert.Equal(t, len(sp.Host.VolumesFrom), 0)
	assert.DeepEqual(t, sp.Host.Binds, []string{"data:/data:ro"})
}

func TestAddressesThatANetworkKeeps(t *testing.T) {
	net := network.Summary{Name: "back", ID: "1", IPAM: network.IPAM{Config: []network.IPAMConfig{
		{Subnet: "10.9.0.0/24", Gateway: "10.9.0.1", AuxAddress: map[string]string{"router": "10.9.0.7"}},
		{Subnet: "10.8.0.0/31"},
		{Subnet: "2001:db8::/64", Gateway: "2001:db8::1"},
	}}}
	for address, why := range map[string]string{
		"10.9.0.0":    "that of the network itself",
		"10.9.0.1":    "its gateway",
		"10.9.0.7":    "reserved by the network's settings",
		"10.9.0.255":  "its broadcast address",
		"10.9.1.1":    "in none of its subnets",
		"2001:db8::1": "its gateway",
		"2001:db8::":  "",
		"10.9.0.2":    "",
		"10.8.0.0":    "",
		"10.8.0.1":    "",
	} {
		e := &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: address}}
		if strings.Contains(address, ":") {
			e.IPAMConfig = &network.EndpointIPAMConfig{IPv6Address: address}
		}
		sp := &Spec{Endpoints: map[string]*network.EndpointSettings{"back": e}}
		problems := sp.AddressProblems(Surroundings{Networks: []network.Summary{net}})
		if why == "" {
			assert.Equal(t, len(problems), 0, address)
			continue
		}
		assert.Equal(t, len(problems), 1, address)
		assert.Equal(t, problems[0].Text, "address "+address+" in network back is "+why)
	}
}

func TestTwoNetworksOfOneName(t *testing.T) {
	sp := &Spec{Endpoints: map[string]*network.EndpointSettings{"back": {}}}
	around := Surroundings{Networks: []network.Summary{{Name: "back", ID: "1"}, {Name: "back", ID: "2"}}}
	assert.DeepEqual(t, around.Problems(sp, "web"), []plan.Problem{
		{Kind: plan.ProblemTwoNetworks, Subject: "back", Text: "there are several networks named back"},
	})
	byID := &Spec{Endpoints: map[string]*network.EndpointSettings{"2": {}}}
	assert.Equal(t, len(around.Problems(byID, "web")), 0)
	sp.Override(RestoreOptions{Networks: []string{"none"}}, nil)
	assert.Equal(t, len(around.Problems(sp, "web")), 0)
}
