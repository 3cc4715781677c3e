package runconfig

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// captured is a snapshot without a configuration.
func captured() catalog.Snapshot {
	return catalog.Snapshot{Record: labels.Record{
		ID: "20260131-120001-000001", Trigger: labels.TriggerManual, Meta: map[string]string{"k": "v"},
		Container: labels.Container{ID: strings.Repeat("ab", 32), Name: "web"},
	}}
}

func TestForCopyTakesNoneOfTheOriginalsTraffic(t *testing.T) {
	sp := Spec{
		Config: container.Config{Hostname: "abababababab", Labels: map[string]string{"own": "1", "com.docker.compose.service": "web"}, MacAddress: "02:42:00:00:00:01"}, //nolint:staticcheck // SA1019: engines before 25 read it.
		Host:   container.HostConfig{NetworkMode: "front", ContainerIDFile: "/tmp/id"}, defaultHostname: true,
		Endpoints: map[string]*network.EndpointSettings{"front": {
			Aliases: []string{"web"}, IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: "10.0.0.5"}, MacAddress: "02:42:00:00:00:01",
			IPAddress: "10.0.0.5", DNSNames: []string{"web"}, EndpointID: "x", DriverOpts: map[string]string{"a": "b"}, GwPriority: 7, Links: []string{"db:database"},
		}},
	}
	sp.ForCopy(captured(), LabelsHarmless)
	assert.Equal(t, sp.Config.Image, "cua-snapshot/web:20260131-120001-000001")
	assert.Equal(t, sp.Config.Hostname, "")
	assert.Equal(t, sp.Config.MacAddress, "") //nolint:staticcheck // SA1019: engines before 25 read it.
	assert.Equal(t, sp.Host.ContainerIDFile, "")
	assert.DeepEqual(t, sp.Endpoints, map[string]*network.EndpointSettings{"front": {
		DriverOpts: map[string]string{"a": "b"}, GwPriority: 7, Links: []string{"db:database"},
	}})
	assert.DeepEqual(t, sp.Config.Labels, map[string]string{
		"own": "1", labels.KeyRestoredFrom: "20260131-120001-000001", labels.KeyCopyOf: "20260131-120001-000001",
	})
}

func TestTheImagesOwnLabelsAreBlank(t *testing.T) {
	var sp Spec
	sp.ForCopy(captured(), LabelsHarmless)
	sp.BlankInherited(map[string]string{labels.KeyID: "x", labels.KeyVersion: "1", labels.PrefixMeta + "k": "v", "cua.snapshot.worker.replace": "{}", "other": "y"})
	assert.DeepEqual(t, sp.Config.Labels, map[string]string{
		labels.KeyID: "", labels.PrefixMeta + "k": "", "cua.snapshot.worker.replace": "",
		labels.KeyVersion: "", labels.KeyRestoredFrom: "20260131-120001-000001", labels.KeyCopyOf: "20260131-120001-000001",
	})
}

func TestForCopyKeepsAChosenHostname(t *testing.T) {
	sp := Spec{Config: container.Config{Hostname: "db", Domainname: "example.org"}}
	sp.ForCopy(captured(), LabelsHarmless)
	assert.Equal(t, sp.Config.Hostname, "db")
	assert.Equal(t, sp.Config.Domainname, "example.org")
}

func TestForCopyFollowsTheRulesOfSharedNamespaces(t *testing.T) {
	whole := func(h container.HostConfig) Spec {
		h.PortBindings, h.PublishAllPorts, h.DNS, h.ExtraHosts, h.Links = nat.PortMap{"80/tcp": nil}, true, []string{"1.1.1.1"}, []string{"a:1.1.1.1"}, []string{"/db:/web/db"}
		return Spec{
			Config:    container.Config{Hostname: "h", Domainname: "d", ExposedPorts: nat.PortSet{"80/tcp": {}}},
			Host:      h,
			Endpoints: map[string]*network.EndpointSettings{"x": {}},
		}
	}
	peer := whole(container.HostConfig{NetworkMode: "container:abc"})
	peer.ForCopy(captured(), LabelsHarmless)
	assert.Equal(t, peer.Config.Hostname+peer.Config.Domainname, "")
	assert.Equal(t, len(peer.Config.ExposedPorts)+len(peer.Host.PortBindings)+len(peer.Host.DNS)+len(peer.Host.ExtraHosts)+len(peer.Host.Links)+len(peer.Endpoints), 0)
	assert.Assert(t, !peer.Host.PublishAllPorts)

	host := whole(container.HostConfig{NetworkMode: "host"})
	host.ForCopy(captured(), LabelsHarmless)
	assert.Equal(t, host.Config.Hostname, "h")
	assert.Equal(t, len(host.Host.Links)+len(host.Endpoints), 0)
	assert.Equal(t, len(host.Host.DNS), 1)

	uts := whole(container.HostConfig{NetworkMode: "x", UTSMode: "host"})
	uts.ForCopy(captured(), LabelsHarmless)
	assert.Equal(t, uts.Config.Hostname+uts.Config.Domainname, "")
	assert.Equal(t, len(uts.Endpoints), 1)
}

func TestVolumesFromBecomeTheirMounts(t *testing.T) {
	sp := Spec{
		Config: container.Config{Volumes: map[string]struct{}{"/declared": {}}},
		Host: container.HostConfig{
			VolumesFrom: []string{"other"}, Binds: []string{"own:/own"}, Mounts: []mount.Mount{{Type: mount.TypeTmpfs, Target: "/tmp"}},
		},
	}
	mounts := []labels.Mount{
		{Type: "volume", Name: "data", Destination: "/data", RW: true},
		{Type: "volume", Name: "ro", Destination: "/ro"},
		{Type: "bind", Source: "/etc", Destination: "/etc", RW: true},
		{Type: "volume", Name: "own", Destination: "/own", RW: true},
		{Type: "volume", Name: "d", Destination: "/declared", RW: true},
		{Type: "tmpfs", Destination: "/tmp", RW: true},
	}
	sp.volumesFromAsMounts(mounts)
	assert.DeepEqual(t, sp.Host.Binds, []string{"own:/own", "data:/data", "ro:/ro:ro", "/etc:/etc"})
	assert.Assert(t, sp.Host.VolumesFrom == nil)
	sp.volumesFromAsMounts(mounts) // has none any more
	assert.Equal(t, len(sp.Host.Binds), 4)
}

func TestOverrideEnv(t *testing.T) {
	tests := map[string]struct{ env, changes, want []string }{
		"nothing":                     {[]string{"A=1"}, nil, []string{"A=1"}},
		"replaced in its place":       {[]string{"A=1", "B=2"}, []string{"A=3"}, []string{"A=3", "B=2"}},
		"added":                       {[]string{"A=1"}, []string{"B=2"}, []string{"A=1", "B=2"}},
		"emptied":                     {[]string{"A=1"}, []string{"A="}, []string{"A="}},
		"hidden, also from the image": {[]string{"A=1", "B=2"}, []string{"A"}, []string{"A", "B=2"}},
		"hidden, only in the image":   {[]string{"B=2"}, []string{"A"}, []string{"B=2", "A"}},
		"back again":                  {[]string{"A"}, []string{"A=1"}, []string{"A=1"}},
		"a key that begins another":   {[]string{"AB=1"}, []string{"A=2"}, []string{"AB=1", "A=2"}},
		"a value with =":              {[]string{"A=1"}, []string{"A=b=c"}, []string{"A=b=c"}},
		"to none":                     {nil, []string{"A=1"}, []string{"A=1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := strings.Join(test.env, " ")
			assert.DeepEqual(t, overrideEnv(test.env, test.changes), test.want)
			assert.Equal(t, strings.Join(test.env, " "), before)
		})
	}
}

func TestOverrideResources(t *testing.T) {
	const mega = 1 << 20
	tests := map[string]struct {
		captured container.Resources
		options  RestoreOptions
		want     container.Resources
	}{
		"as captured": {
			container.Resources{Memory: mega, MemorySwap: 2 * mega, CPUQuota: 5},
			RestoreOptions{},
			container.Resources{Memory: mega, MemorySwap: 2 * mega, CPUQuota: 5},
		},
		"a swap limit that followed from the memory limit": {
			container.Resources{Memory: mega, MemorySwap: 2 * mega},
			RestoreOptions{Memory: new(int64(4 * mega))},
			container.Resources{Memory: 4 * mega},
		},
		"a swap limit that was set, and fits": {
			container.Resources{Memory: mega, MemorySwap: 9 * mega},
			RestoreOptions{Memory: new(int64(4 * mega))},
			container.Resources{Memory: 4 * mega, MemorySwap: 9 * mega},
		},
		"a swap limit that is too small now": {
			container.Resources{Memory: mega, MemorySwap: 3 * mega},
			RestoreOptions{Memory: new(int64(4 * mega))},
			container.Resources{Memory: 4 * mega},
		},
		"swap without limit": {
			container.Resources{Memory: mega, MemorySwap: -1},
			RestoreOptions{Memory: new(int64(4 * mega))},
			container.Resources{Memory: 4 * mega, MemorySwap: -1},
		},
		"a reservation above the new limit": {
			container.Resources{Memory: 4 * mega, MemoryReservation: 3 * mega, MemorySwap: 8 * mega},
			RestoreOptions{Memory: new(int64(mega))},
			container.Resources{Memory: mega, MemoryReservation: mega},
		},
		"no limit of memory": {
			container.Resources{Memory: 4 * mega, MemoryReservation: 3 * mega, MemorySwap: 9 * mega, CPUQuota: 5},
			RestoreOptions{Memory: new(int64(0))},
			container.Resources{CPUQuota: 5},
		},
		"no limit of memory, where swap had none": {
			container.Resources{Memory: mega, MemorySwap: -1},
			RestoreOptions{Memory: new(int64(0))},
			container.Resources{},
		},
		"no limit of CPUs": {
			container.Resources{NanoCPUs: 5, CPUShares: 3, Memory: mega},
			RestoreOptions{NanoCPUs: new(int64(0))},
			container.Resources{CPUShares: 3, Memory: mega},
		},
		"no limit of CPUs, which was a quota": {
			container.Resources{CPUQuota: 50000, CPUPeriod: 100000},
			RestoreOptions{NanoCPUs: new(int64(0))},
			container.Resources{},
		},
		"CPUs replace quota and period": {
			container.Resources{CPUQuota: 50000, CPUPeriod: 100000, CPUShares: 3},
			RestoreOptions{NanoCPUs: new(int64(1_500_000_000))},
			container.Resources{NanoCPUs: 1_500_000_000, CPUShares: 3},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := Spec{Host: container.HostConfig{Resources: test.captured}}
			sp.overrideResources(test.options)
			assert.DeepEqual(t, sp.Host.Resources, test.want)
		})
	}
}

func TestFitAPI(t *testing.T) {
	full := func() *Spec {
		return &Spec{
			Config: container.Config{Healthcheck: &dockerspec.HealthcheckConfig{Test: []string{"CMD", "x"}, StartInterval: 5}},
			Host: container.HostConfig{Mounts: []mount.Mount{
				{Type: mount.TypeBind, BindOptions: &mount.BindOptions{ReadOnlyForceRecursive: true, NonRecursive: true}}, {Type: mount.TypeTmpfs},
			}},
		}
	}
	for _, version := range []string{"1.44", "1.51"} {
		sp := full()
		assert.Equal(t, len(sp.FitAPI(version)), 0)
		assert.DeepEqual(t, sp.Host, full().Host)
	}
	sp := full()
	assert.DeepEqual(t, sp.FitAPI("1.41"), []string{"Config.Healthcheck.StartInterval", "HostConfig.Mounts.BindOptions.ReadOnlyForceRecursive"})
	assert.DeepEqual(t, sp.Config.Healthcheck, &dockerspec.HealthcheckConfig{Test: []string{"CMD", "x"}})
	assert.DeepEqual(t, sp.Host.Mounts[0].BindOptions, &mount.BindOptions{NonRecursive: true})
	assert.Equal(t, len((&Spec{}).FitAPI("1.24")), 0)
}
