//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gotest.tools/v3/assert"
)

// differsInPlace are JSON pointers to what is different in a container that was restored in place.
var differsInPlace = []string{
	"/Id", "/Created", "/Image", "/Config/Image", "/ImageManifestDescriptor/*", "/GraphDriver/Data/*",
	"/HostnamePath", "/HostsPath", "/LogPath", "/ResolvConfPath",
	"/State/Pid", "/State/StartedAt", "/State/FinishedAt",
	"/Config/Labels", "/Config/Labels/cua.snapshot.*",
	"/NetworkSettings/SandboxID", "/NetworkSettings/SandboxKey", "/NetworkSettings/EndpointID", "/NetworkSettings/Networks/*/EndpointID",
}

// Addresses and ports that nobody has chosen.
var (
	ownIP    = []string{"/NetworkSettings/IPAddress", "/NetworkSettings/Networks/*/IPAddress"}
	ownMAC   = []string{"/NetworkSettings/MacAddress", "/NetworkSettings/Networks/*/MacAddress"}
	ownPorts = []string{"/NetworkSettings/Ports/*/*/HostPort"}
)

// inPlace is what else may differ, by the name of the case. An anonymous volume is mounted by its name now, and one that was
// empty must not be filled from the image.
var inPlace = map[string][]string{
	"process":                      {"/State/Health/*", "/State/Health/Log/*/*"},
	"mounts":                       words(`/HostConfig/Binds/* /Mounts/*/Mode /HostConfig/Mounts/0/VolumeOptions/DriverConfig`),
	"bridge":                       ownPorts,
	"namespaces of the host":       {ownHostname}, // inspect shows one; the container has the host's
	"all ports published":          ownPorts,
	"network of another container": {"/HostConfig/PortBindings"}, // {}, or nothing
	"what only new engines know":   words(`/State/Health/* /State/Health/Log/*/* /HostConfig/Mounts/0/VolumeOptions/DriverConfig`),
	"two networks":                 {"/NetworkSettings/Networks/*/IPAMConfig"}, // {}, or nothing
	// It is connected to the same networks, of which one has to be the first. Nobody can tell whether its address there was chosen.
	"a network that was left":                     words(`/HostConfig/NetworkMode /NetworkSettings/Networks/*/IPAMConfig /NetworkSettings/Networks/*/DriverOpts /Config/MacAddress`),
	"no network any more":                         words(`/HostConfig/NetworkMode /NetworkSettings/Networks /NetworkSettings/Networks/none/*`),
	"everything of its image, nothing of its own": words(`/State/Health/* /State/Health/Log/*/* /HostConfig/Binds/0 /Mounts/*/Mode`, ownPorts...),
}

func TestReplaceKeepsTheConfiguration(t *testing.T) {
	forEachConfig(t, "inplace", configCase.replace)
}

func (tc configCase) replace(t *testing.T, prefix string) {
	_, call := tc.start(t, prefix)
	call("snapshot", "create", "--store", "$P-store", "$P-web", "one")
	before := leaves(t, prefix+"-web")
	call("snapshot", "restore", "--store", "$P-store", "--replace", "--force", "--stop-others", "--timeout", "0", "--wait=false", "$P-web:one")
	allowed := slices.Concat(differsInPlace, inPlace[tc.name])
	// The host name stays. If the engine made it from the former ID, it is a DNS name beside that of the new ID.
	hostname := before["/Config/Hostname"]
	allowed = append(allowed, "/NetworkSettings/Networks/*/Aliases/"+hostname, "/NetworkSettings/Networks/*/DNSNames/"+hostname)
	if tc.name != "network with alias and fixed addresses" {
		allowed = append(allowed, ownIP...)
	}
	if tc.name != "network with a fixed hardware address" {
		allowed = append(allowed, ownMAC...)
	}
	checkSame(t, before, leaves(t, prefix+"-web"), allowed)
}

const composeFile = `
services:
  web:
    image: busybox
    command: [sleep, "1000"]
    hostname: shop
    environment: {COLOUR: blue}
    labels: {app: shop}
    mem_limit: 64m
    ports: ["127.0.0.1::80"]
    volumes: ["data:/data", "/anonymous", "/etc:/host:ro"]
    healthcheck: {test: [CMD, "true"], interval: 1h}
    networks:
      front: {aliases: [site], ipv4_address: 10.99.2.77}
      back: {}
volumes:
  data:
networks:
  front:
    ipam: {config: [{subnet: 10.99.2.0/24}]}
  back:
`

func TestReplaceKeepsAComposeService(t *testing.T) {
	t.Parallel()
	prefix := ownPrefix(t, "composed")
	assert.NilError(t, installCompose(configDir))
	file := filepath.Join(t.TempDir(), "compose.yaml")
	assert.NilError(t, os.WriteFile(file, []byte(composeFile), 0o600))
	call := func(args ...string) {
		t.Helper()
		_, err := docker(args...)
		assert.NilError(t, err)
	}
	call("compose", "--project-name", prefix, "--file", file, "up", "--detach")
	web, store := prefix+"-web-1", prefix+"-store"
	call("snapshot", "create", "--store", store, web, "one")
	before := leaves(t, web)
	call("snapshot", "restore", "--store", store, "--replace", "--force", "--timeout", "0", "--wait=false", web+":one")
	allowed := slices.Concat(differsInPlace, inPlace["mounts"], inPlace["process"], ownPorts, ownMAC,
		words("/NetworkSettings/Networks/"+prefix+"_back/IPAddress /HostConfig/Mounts/0/Source /HostConfig/Mounts/0/VolumeOptions /HostConfig/Mounts/0/VolumeOptions/NoCopy"))
	checkSame(t, before, leaves(t, web), allowed)
}
