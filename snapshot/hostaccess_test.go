package snapshot

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"
)

func TestHostAccessNamesEveryPower(t *testing.T) {
	bind := func(source string) func(*container.HostConfig) {
		return func(h *container.HostConfig) { h.Binds = []string{source + ":/inside"} }
	}
	security := func(option string) func(*container.HostConfig) {
		return func(h *container.HostConfig) { h.SecurityOpt = []string{option} }
	}
	tests := []struct {
		want string
		set  func(*container.HostConfig)
	}{
		{"--privileged", func(h *container.HostConfig) { h.Privileged = true }},
		{"--network host", func(h *container.HostConfig) { h.NetworkMode = "host" }},
		{"--pid host", func(h *container.HostConfig) { h.PidMode = "host" }},
		{"--ipc host", func(h *container.HostConfig) { h.IpcMode = "host" }},
		{"--uts host", func(h *container.HostConfig) { h.UTSMode = "host" }},
		{"--userns host", func(h *container.HostConfig) { h.UsernsMode = "host" }},
		{"--cap-add SYS_ADMIN", func(h *container.HostConfig) { h.CapAdd = []string{"SYS_ADMIN"} }},
		{"--cap-add CAP_NET_ADMIN", func(h *container.HostConfig) { h.CapAdd = []string{"CAP_NET_ADMIN"} }},
		{"--cap-add ALL", func(h *container.HostConfig) { h.CapAdd = []string{"ALL"} }},
		{"--device /dev/sda", func(h *container.HostConfig) { h.Devices = []container.DeviceMapping{{PathOnHost: "/dev/sda"}} }},
		{`--device-cgroup-rule "b 8:* rwm"`, func(h *container.HostConfig) { h.DeviceCgroupRules = []string{"b 8:* rwm"} }},
		{"--gpus or another device request", func(h *container.HostConfig) { h.DeviceRequests = []container.DeviceRequest{{Count: -1}} }},
		{"--security-opt seccomp=unconfined", security("seccomp=unconfined")},
		{"--security-opt apparmor:unconfined", security("apparmor:unconfined")},
		{"--security-opt label=disable", security("label=disable")},
		{"--security-opt label:disable", security("label:disable")},
		{"--security-opt systempaths=unconfined", func(h *container.HostConfig) { h.MaskedPaths = []string{} }},
		{"--security-opt systempaths=unconfined", func(h *container.HostConfig) { h.MaskedPaths = []string{"/harmless"} }},
		{"--security-opt seccomp with a profile that allows whatever it does not name", security(`seccomp={"defaultAction": "SCMP_ACT_ALLOW"}`)},
		{"--security-opt systempaths=unconfined", func(h *container.HostConfig) { h.ReadonlyPaths = []string{} }},
		{"bind mount of /", bind("/")},
		{"bind mount of //", bind("//")},
		{"bind mount of /home/..", bind("/home/..")},
		{"bind mount of /var/run/docker.sock", bind("/var/run/docker.sock")},
		{"bind mount of /run/docker.sock", bind("/run/docker.sock")},
		{"bind mount of /run", bind("/run")},
		{"bind mount of /var/run/", bind("/var/run/")},
		{"bind mount of /run/containerd", bind("/run/containerd")},
		{"bind mount of /home/me/.docker/run/docker.sock", bind("/home/me/.docker/run/docker.sock")},
		{"bind mount of /etc", bind("/etc")},
		{"bind mount of /dev", bind("/dev")},
		{"bind mount of /proc/", bind("/proc/")},
		{"bind mount of /var/lib/docker", bind("/var/lib/docker")},
		{"bind mount of /var/lib/docker/volumes/other/_data", bind("/var/lib/docker/volumes/other/_data")},
		{"bind mount of /proc/1/root", bind("/proc/1/root")},
		{"bind mount of /etc/cron.d", bind("/etc/cron.d")},
		{"bind mount of /root/.ssh", bind("/root/.ssh")},
		{"bind mount of /dev/sda", bind("/dev/sda")},
		{"bind mount of /home", bind("/home")},
		{"bind mount of /run/user/1000", bind("/run/user/1000")},
		{"bind mount of /home/me/.docker/run", bind("/home/me/.docker/run")},
		{"bind mount of /", func(h *container.HostConfig) {
			h.Mounts = []mount.Mount{{Type: mount.TypeBind, Source: "/", Target: "/host", ReadOnly: true}}
		}},
		{"volume on /dev/sda1", func(h *container.HostConfig) {
			h.Mounts = []mount.Mount{{Type: mount.TypeVolume, Target: "/disk", VolumeOptions: &mount.VolumeOptions{
				DriverConfig: &mount.Driver{Name: "local", Options: map[string]string{"type": "ext4", "device": "/dev/sda1"}},
			}}}
		}},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			var sp spec
			test.set(&sp.host)
			assert.DeepEqual(t, sp.hostAccess(), []string{test.want})
		})
	}
}

func TestHostAccessLeavesOrdinaryContainersAlone(t *testing.T) {
	tests := map[string]container.HostConfig{
		"nothing":               {},
		"default capabilities":  {CapAdd: []string{"CHOWN", "CAP_SETUID", "net_raw", "NET_BIND_SERVICE"}},
		"dropped capabilities":  {CapDrop: []string{"ALL"}},
		"own namespaces":        {NetworkMode: "bridge", IpcMode: "private", PidMode: "", UTSMode: "", CgroupnsMode: "private"},
		"another's namespaces":  {NetworkMode: "container:x", IpcMode: "container:x", PidMode: "container:x"},
		"a seccomp profile":     {SecurityOpt: []string{"seccomp={\"defaultAction\":\"SCMP_ACT_ERRNO\"}", "no-new-privileges", "apparmor=docker-default"}},
		"the default paths":     {MaskedPaths: []string{"/proc/kcore"}, ReadonlyPaths: []string{"/proc/sys"}},
		"a directory":           {Binds: []string{"/srv/app:/app", "/home/me/src:/src:ro", "/var/log/app:/log", "/runner:/runner", "/devel:/d", "/var/running:/r"}},
		"the time zone":         {Binds: []string{"/etc/localtime:/etc/localtime:ro", "/etc/timezone:/etc/timezone:ro", "/usr/share/zoneinfo:/usr/share/zoneinfo:ro", "/etc/ssl/certs:/etc/ssl/certs:ro"}},
		"a volume called run":   {Binds: []string{"run:/run", "etc:/etc"}},
		"a volume":              {Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "data", Target: "/"}}},
		"a volume with options": {Mounts: []mount.Mount{{Type: mount.TypeVolume, Target: "/n", VolumeOptions: &mount.VolumeOptions{DriverConfig: &mount.Driver{Options: map[string]string{"device": ":/export"}}}}}},
		"memory":                {Mounts: []mount.Mount{{Type: mount.TypeTmpfs, Target: "/run"}}, Tmpfs: map[string]string{"/etc": ""}},
		"privileges within":     {ReadonlyRootfs: true, Sysctls: map[string]string{"net.core.somaxconn": "1"}},
	}
	for name, host := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, len((&spec{host: host}).hostAccess()), 0, "%v", (&spec{host: host}).hostAccess())
		})
	}
}

func TestPrivilegedNeedsNoUnmaskedPathsNamed(t *testing.T) {
	sp := spec{host: container.HostConfig{Privileged: true, MaskedPaths: []string{}, ReadonlyPaths: []string{}}}
	assert.DeepEqual(t, sp.hostAccess(), []string{"--privileged"})
}

// An engine on cgroup version 1 gives the host's cgroups to every container, and
// reports that as if it had been asked for.
func TestHostCgroupsAreAPowerOnlyWhereTheyAreNotTheRule(t *testing.T) {
	sp := &spec{host: container.HostConfig{CgroupnsMode: "host"}}
	old := surroundings{info: system.Info{SecurityOptions: []string{"name=seccomp,profile=default"}}}
	assert.Equal(t, len(old.hostAccessProblems(sp, nil)), 0)
	current := surroundings{info: system.Info{SecurityOptions: []string{"name=seccomp,profile=builtin", "name=cgroupns"}}}
	assert.Equal(t, len(current.hostAccessProblems(sp, nil)), 1)
}

func TestVolumesThatWouldBeMadeCanBeAPower(t *testing.T) {
	problems := surroundings{}.hostAccessProblems(&spec{}, []volume.CreateOptions{
		{Name: "plain"},
		{Name: "nfs", DriverOpts: map[string]string{"type": "nfs", "device": ":/export"}},
		{Name: "root", DriverOpts: map[string]string{"type": "none", "o": "bind", "device": "/"}},
	})
	assert.DeepEqual(t, problems, []Problem{{
		Kind: ProblemHostAccess, Subject: "volume root on /",
		Text: "the snapshot was made on another engine and asks for power over this host: volume root on /",
	}})
}

func TestAForeignSnapshotDoesNotGetVolumesThatAreHere(t *testing.T) {
	sp := &spec{host: container.HostConfig{
		Binds:  []string{"made-1:/a", "victim:/b", "absent:/c", "/srv:/d"},
		Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "other", Target: "/e"}},
	}}
	s := surroundings{noVolume: map[string]bool{"absent": true}}
	var asks []string
	for _, p := range s.borrowedVolumes(sp, []newVolume{{create: volume.CreateOptions{Name: "made-1"}}}) {
		asks = append(asks, p.Subject)
	}
	assert.DeepEqual(t, asks, []string{"volume other, which is here already", "volume victim, which is here already"})
}
