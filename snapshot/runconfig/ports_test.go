package runconfig

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"
)

func TestFreeTakenPorts(t *testing.T) {
	tests := map[string]struct {
		held       container.Port
		bound      nat.Port
		binding    nat.PortBinding
		wantedFree bool // the engine has to choose another
	}{
		"the same":                     {container.Port{IP: "0.0.0.0", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostIP: "0.0.0.0", HostPort: "80"}, true},
		"no address said":              {container.Port{IP: "0.0.0.0", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "80"}, true},
		"one address, held on all":     {container.Port{IP: "0.0.0.0", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostIP: "127.0.0.1", HostPort: "80"}, true},
		"all addresses, held on one":   {container.Port{IP: "127.0.0.1", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "80"}, true},
		"another address":              {container.Port{IP: "127.0.0.1", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostIP: "127.0.0.2", HostPort: "80"}, false},
		"another port":                 {container.Port{IP: "0.0.0.0", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "81"}, false},
		"another protocol":             {container.Port{IP: "0.0.0.0", PublicPort: 53, Type: "tcp"}, "53/udp", nat.PortBinding{HostPort: "53"}, false},
		"the port inside is no matter": {container.Port{IP: "0.0.0.0", PublicPort: 80, PrivatePort: 1, Type: "tcp"}, "8080/tcp", nat.PortBinding{HostPort: "80"}, true},
		"not published":                {container.Port{PrivatePort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "80"}, false},
		"chosen by the engine":         {container.Port{IP: "0.0.0.0", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{}, false},
		"zero, chosen by the engine":   {container.Port{IP: "0.0.0.0", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "0"}, false},
		"a range of which one is free": {container.Port{IP: "0.0.0.0", PublicPort: 8000, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "8000-8001"}, false},
		"a range of one":               {container.Port{IP: "0.0.0.0", PublicPort: 8000, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "8000-8000"}, true},
		"a range that is none":         {container.Port{IP: "0.0.0.0", PublicPort: 8000, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "8000-7000"}, false},
		"no number":                    {container.Port{IP: "0.0.0.0", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "http"}, false},
		"beyond all ports":             {container.Port{IP: "0.0.0.0", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostPort: "65616"}, false},
		"IPv6, all":                    {container.Port{IP: "::", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostIP: "::1", HostPort: "80"}, true},
		"IPv6, in another writing":     {container.Port{IP: "fe80::1", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostIP: "fe80:0:0:0::1", HostPort: "80"}, true},
		"IPv6, another address":        {container.Port{IP: "fe80::1", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostIP: "fe80::2", HostPort: "80"}, false},
		"IPv4 written as IPv6":         {container.Port{IP: "127.0.0.1", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostIP: "::ffff:127.0.0.1", HostPort: "80"}, true},
		"an address that is none":      {container.Port{IP: "127.0.0.1", PublicPort: 80, Type: "tcp"}, "80/tcp", nat.PortBinding{HostIP: "localhost", HostPort: "80"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := Spec{Host: container.HostConfig{PortBindings: nat.PortMap{test.bound: {test.binding}}}}
			held := HeldPorts([]container.Summary{{Names: []string{"/holder"}, Ports: []container.Port{test.held}}})

			plan := sp.FreeTakenPorts(held, nil)

			want, text := test.binding, ""
			if test.wantedFree {
				want.HostPort = ""
				text = "port " + test.binding.HostPort + " is taken by holder: " + string(test.bound) + " gets a free one\n"
			}
			assert.DeepEqual(t, sp.Host.PortBindings, nat.PortMap{test.bound: {want}})
			assert.Equal(t, plan.String(), text)
		})
	}
}

func TestFreeTakenPortsKeepsTheOtherBindings(t *testing.T) {
	captured := nat.PortMap{
		"80/tcp":  {{HostIP: "127.0.0.1", HostPort: "80"}, {HostIP: "10.0.0.1", HostPort: "80"}},
		"443/tcp": {{HostPort: "443"}},
		"9/udp":   nil,
	}
	sp := Spec{Host: container.HostConfig{PortBindings: clonePorts(captured)}}
	plan := sp.FreeTakenPorts(map[HostPort]string{{parseIP("10.0.0.1"), 80, "tcp"}: "a", {parseIP("::"), 443, "tcp"}: "b"}, nil)
	assert.DeepEqual(t, sp.Host.PortBindings, nat.PortMap{
		"80/tcp":  {{HostIP: "127.0.0.1", HostPort: "80"}, {HostIP: "10.0.0.1"}},
		"443/tcp": {{}},
		"9/udp":   nil,
	})
	assert.Equal(t, plan.String(), "port 443 is taken by b: 443/tcp gets a free one\nport 80 is taken by a: 80/tcp gets a free one\n")
}

func TestFreeTakenPortsReplacesARangeThatIsFull(t *testing.T) {
	held := map[HostPort]string{{parseIP("10.0.0.1"), 8000, "tcp"}: "b", {parseIP("0.0.0.0"), 8001, "tcp"}: "a", {parseIP("::"), 8002, "tcp"}: "b"}
	for ports, why := range map[string]string{"8000-8002": "a, b", "8002-8002": "b", "8000-8003": ""} {
		sp := Spec{Host: container.HostConfig{PortBindings: nat.PortMap{"80/tcp": {{HostIP: "10.0.0.1", HostPort: ports}}}}}
		plan := sp.FreeTakenPorts(held, nil)
		want := ""
		if why != "" {
			want = "port " + ports + " is taken by " + why + ": 80/tcp gets a free one\n"
		}
		assert.Equal(t, plan.String(), want)
		assert.Equal(t, sp.Host.PortBindings["80/tcp"][0].HostPort == "", why != "")
	}
}

func TestPortsThatTheUserNamedAreNotReplaced(t *testing.T) {
	sp := Spec{Host: container.HostConfig{PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}, "81/tcp": {{HostPort: "8081"}}}}}
	named := nat.PortMap{"80/tcp": {{HostPort: "8080"}}}
	held := map[HostPort]string{{Port: 8080, Proto: "tcp"}: "a", {Port: 8081, Proto: "tcp"}: "b"}
	assert.Equal(t, sp.FreeTakenPorts(held, named).String(), "port 8081 is taken by b: 81/tcp gets a free one\n")
	assert.DeepEqual(t, sp.Host.PortBindings, nat.PortMap{"80/tcp": {{HostPort: "8080"}}, "81/tcp": {{}}})
	assert.Equal(t, len(sp.FreeFailedPort(errorString("Bind for 0.0.0.0:8080 failed: port is already allocated"), named)), 0)
	assert.Equal(t, len(sp.FreeFailedPort(errorString("Bind for 0.0.0.0:8080 failed: port is already allocated"), nil)), 1)
}

func TestOverridePorts(t *testing.T) {
	captured := func() Spec {
		return Spec{
			Config: container.Config{ExposedPorts: nat.PortSet{"80/tcp": {}, "81/tcp": {}}},
			Host:   container.HostConfig{PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}, "81/tcp": {{HostIP: "::1", HostPort: "8081"}}}},
		}
	}
	publish := nat.PortMap{"80/tcp": {{HostPort: "9090"}}, "90/udp": {{HostPort: "9091"}}}

	sp := captured()
	sp.overridePorts(RestoreOptions{})
	assert.DeepEqual(t, sp.Host.PortBindings, captured().Host.PortBindings)

	sp = captured()
	sp.overridePorts(RestoreOptions{Publish: publish})
	assert.DeepEqual(t, sp.Host.PortBindings, nat.PortMap{"80/tcp": {{HostPort: "9090"}}, "81/tcp": {{HostIP: "::1", HostPort: "8081"}}, "90/udp": {{HostPort: "9091"}}})
	assert.DeepEqual(t, sp.Config.ExposedPorts, nat.PortSet{"80/tcp": {}, "81/tcp": {}, "90/udp": {}})

	sp = captured()
	sp.overridePorts(RestoreOptions{PublishAll: true, Publish: publish})
	assert.Assert(t, sp.Host.PublishAllPorts)
	assert.DeepEqual(t, sp.Host.PortBindings, nat.PortMap{"80/tcp": {{HostPort: "9090"}}, "81/tcp": {{HostIP: "::1"}}, "90/udp": {{HostPort: "9091"}}})

	var bare Spec
	bare.overridePorts(RestoreOptions{Publish: publish})
	assert.DeepEqual(t, bare.Host.PortBindings, publish)
	bare.FreeTakenPorts(map[HostPort]string{{Port: 9090, Proto: "tcp"}: "x"}, nil)
	assert.Equal(t, publish["80/tcp"][0].HostPort, "9090", "the caller's own")
}

func TestFreeFailedPort(t *testing.T) {
	tests := map[string]struct {
		message, want string
	}{
		"docker's own allocation": {
			"driver failed programming external connectivity on endpoint web: Bind for 0.0.0.0:8080 failed: port is already allocated",
			"port 8080 is taken by another program on the host: 80/tcp gets a free one\n",
		},
		"another program, IPv6": {
			"failed to bind host port [::]:8443/tcp: address already in use",
			"port 8443 is taken by another program on the host: 443/tcp gets a free one\n",
		},
		"userland proxy": {
			"Error starting userland proxy: listen tcp4 127.0.0.1:8080: bind: address already in use",
			"port 8080 is taken by another program on the host: 80/tcp gets a free one\n",
		},
		"the last port of a range that was tried": {
			"failed to bind host port 127.0.0.1:9001/tcp: address already in use",
			"port 9000-9001 is taken by another program on the host: 90/tcp gets a free one\n",
		},
		"a port, also in a range": {
			"failed to bind host port 127.0.0.1:9100/tcp: address already in use",
			"port 9100 is taken by another program on the host: 91/tcp gets a free one\n",
		},
		"no port of a range": {
			"driver failed programming external connectivity on endpoint web: all ports are allocated",
			"port 9000-9001 is taken by another program on the host: 90/tcp gets a free one\nport 9100-9101 is taken by another program on the host: 92/tcp gets a free one\n",
		},
		"a port that is not ours":    {"listen tcp4 0.0.0.0:808: bind: address already in use", ""},
		"something else":             {"OCI runtime create failed: exec: \"x\": executable file not found, port 8080", ""},
		"something else with a port": {"dial tcp 10.0.0.1:8080: connection refused", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := Spec{Host: container.HostConfig{PortBindings: nat.PortMap{
				"80/tcp": {{HostPort: "8080"}}, "443/tcp": {{HostPort: "8443"}}, "90/tcp": {{HostPort: "9000-9001"}},
				"91/tcp": {{HostPort: "9100"}}, "92/tcp": {{HostPort: "9100-9101"}}, "93/tcp": {{}},
			}}}
			assert.Equal(t, sp.FreeFailedPort(errorString(test.message), nil).String(), test.want)
		})
	}
}

type errorString string

func (e errorString) Error() string { return string(e) }
