//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// alwaysDiffers are JSON pointers to what is different in every copy; * stands for one step.
var alwaysDiffers = []string{
	"/Id", "/Name", "/Created", "/Image", "/Config/Image", "/ImageManifestDescriptor/*", "/GraphDriver/Data/*",
	"/HostnamePath", "/HostsPath", "/LogPath", "/ResolvConfPath",
	"/State/Pid", "/State/StartedAt", "/State/FinishedAt",
	"/Config/Labels", "/Config/Labels/cua.snapshot.*",
	"/NetworkSettings/SandboxID", "/NetworkSettings/SandboxKey", "/NetworkSettings/EndpointID",
	"/NetworkSettings/IPAddress", "/NetworkSettings/MacAddress",
	"/NetworkSettings/Networks/*/EndpointID", "/NetworkSettings/Networks/*/IPAddress", "/NetworkSettings/Networks/*/MacAddress",
}

// The hostname is made from the ID, and so are the names by which networks know a container.
var (
	ownHostname = "/Config/Hostname"
	ownNames    = []string{"/NetworkSettings/Networks/*/Aliases/*", "/NetworkSettings/Networks/*/DNSNames/*"}
)

// configCase is a container whose configuration has to come back. In its arguments $P is the prefix of all names.
type configCase struct {
	name    string
	only    string   // the engine that can do it; empty: both
	before  []string // docker commands
	args    []string // of docker run --detach
	sets    []string // pointers of docker inspect at which the container differs from one without options
	differs []string // and at which the copy may differ from the original
	tells   []string // regular expressions, one for each line that a restore as a copy says
	mayTell string   // one for what only some engines say
}

var configCases = []configCase{
	{
		name: "process",
		args: words(`--entrypoint /bin/sh --env A=1 --env EMPTY= --env SPACED=a_b --user 1000:1000 --group-add 5 --workdir /var
			--hostname host --domainname example.org --tty --interactive --init --label app=shop --label empty=
			--stop-signal SIGUSR1 --stop-timeout 3 --restart on-failure:3 --runtime io.containerd.runc.v2
			--health-cmd true --health-interval 1h --health-timeout 7s --health-retries 4 --health-start-period 2s
			--log-driver json-file --log-opt max-size=1m --log-opt max-file=3 --log-opt labels=app
			busybox -c read`),
		sets: words(`/Path /Args/0 /Config/Entrypoint/0 /Config/Cmd/0 /Config/Env/0 /Config/Env/1 /Config/Env/2 /Config/User
			/HostConfig/GroupAdd/0 /Config/WorkingDir /Config/Hostname /Config/Domainname /Config/Tty /Config/OpenStdin
			/HostConfig/Init /Config/Labels/app /Config/Labels/empty /Config/StopSignal /Config/StopTimeout
			/HostConfig/RestartPolicy/Name /HostConfig/RestartPolicy/MaximumRetryCount /HostConfig/Runtime
			/Config/Healthcheck/Test/1 /Config/Healthcheck/Interval /Config/Healthcheck/Timeout /Config/Healthcheck/Retries
			/Config/Healthcheck/StartPeriod
			/HostConfig/LogConfig/Config/max-size /HostConfig/LogConfig/Config/max-file /HostConfig/LogConfig/Config/labels`),
		differs: words(`/State/Health/* /State/Health/Log/*/*`),
	},
	{
		name: "resources",
		args: words(`--memory 64m --memory-reservation 32m --memory-swap 96m --memory-swappiness 10 --shm-size 8m
			--cpus 1.5 --cpu-shares 512 --cpuset-cpus 0 --cpuset-mems 0 --pids-limit 100 --oom-score-adj 100 --oom-kill-disable
			--ulimit nofile=100:200 --ulimit nproc=50 --cgroup-parent /e2e
			busybox sleep 1000`),
		sets: words(`/HostConfig/Memory /HostConfig/MemoryReservation /HostConfig/MemorySwap /HostConfig/MemorySwappiness /HostConfig/ShmSize
			/HostConfig/NanoCpus /HostConfig/CpuShares /HostConfig/CpusetCpus /HostConfig/CpusetMems /HostConfig/PidsLimit
			/HostConfig/OomScoreAdj /HostConfig/OomKillDisable /HostConfig/Ulimits/0/Soft /HostConfig/Ulimits/1/Hard /HostConfig/CgroupParent`),
		differs: []string{ownHostname},
	},
	{
		name: "limits of devices", // of none that every machine has, so it is not started
		before: []string{`create --name $P-web --device-read-bps /dev/zero:1mb --device-write-bps /dev/zero:2mb
			--device-read-iops /dev/zero:100 --device-write-iops /dev/zero:200 busybox`},
		sets: words(`/HostConfig/BlkioDeviceReadBps/0/Rate /HostConfig/BlkioDeviceWriteBps/0/Rate
			/HostConfig/BlkioDeviceReadIOps/0/Rate /HostConfig/BlkioDeviceWriteIOps/0/Rate`),
		differs: []string{ownHostname},
	},
	{
		name:    "CPU periods",
		args:    words(`--cpu-period 50000 --cpu-quota 25000 busybox sleep 1000`),
		sets:    words(`/HostConfig/CpuPeriod /HostConfig/CpuQuota`),
		differs: []string{ownHostname},
	},
	{
		name: "security",
		args: words(`--cap-add NET_ADMIN --cap-add SYS_PTRACE --cap-drop MKNOD --security-opt no-new-privileges --security-opt seccomp=unconfined
			--security-opt systempaths=unconfined --read-only --sysctl net.ipv4.ip_forward=0 --sysctl kernel.shmmax=65536
			--device /dev/null:/dev/mine:rw --cgroupns private`,
			"--device-cgroup-rule", "c 1:3 rwm", "busybox", "sleep", "1000"),
		sets: words(`/HostConfig/CapAdd/0 /HostConfig/CapAdd/1 /HostConfig/CapDrop/0 /HostConfig/SecurityOpt/0 /HostConfig/SecurityOpt/1
			/HostConfig/MaskedPaths/0 /HostConfig/ReadonlyPaths/0 /HostConfig/ReadonlyRootfs
			/HostConfig/Sysctls/net.ipv4.ip_forward /HostConfig/Sysctls/kernel.shmmax /HostConfig/Devices/0/PathInContainer
			/HostConfig/DeviceCgroupRules/0 /HostConfig/CgroupnsMode`),
		differs: []string{ownHostname},
	},
	{
		name:    "privileged",
		only:    "privileged",
		args:    words(`--privileged busybox sleep 1000`),
		sets:    words(`/HostConfig/Privileged /HostConfig/SecurityOpt/0`),
		differs: []string{ownHostname},
	},
	{
		name: "namespaces of the host",
		args: words(`--ipc host --pid host --uts host --userns host busybox sleep 1000`),
		sets: words(`/HostConfig/IpcMode /HostConfig/PidMode /HostConfig/UTSMode /HostConfig/UsernsMode`), differs: []string{ownHostname},
	},
	{
		name:    "namespaces of another",
		before:  []string{"run --detach --name $P-peer --ipc shareable busybox sleep 1000"},
		args:    words(`--ipc container:$P-peer --pid container:$P-peer busybox sleep 1000`),
		sets:    words(`/HostConfig/IpcMode /HostConfig/PidMode`),
		differs: []string{ownHostname},
	},
	{
		name:   "mounts",
		before: []string{"volume create --label own=1 $P-named", "run --detach --name $P-other --volume $P-from:/from --volume /etc:/from-host busybox sleep 1000"},
		args: words(`--volume $P-data:/data --volume /anonymous --volume /usr:/bound:ro,private --volumes-from $P-other:ro
			--mount type=volume,src=$P-named,dst=/named,volume-nocopy --mount type=bind,src=/etc,dst=/mounted,readonly,bind-propagation=rprivate
			--mount type=tmpfs,dst=/memory,tmpfs-size=1000000,tmpfs-mode=0700 --tmpfs /scratch:size=64k,mode=1770
			busybox sleep 1000`),
		sets: words(`/HostConfig/Binds/0 /HostConfig/Binds/1 /HostConfig/Mounts/0/Target /HostConfig/Mounts/0/VolumeOptions/NoCopy
			/HostConfig/Mounts/1/BindOptions/Propagation /HostConfig/Mounts/1/ReadOnly /HostConfig/Mounts/2/TmpfsOptions/SizeBytes
			/HostConfig/Mounts/2/TmpfsOptions/Mode /HostConfig/Tmpfs/~1scratch /HostConfig/VolumesFrom/0 /Config/Volumes/~1anonymous`),
		// The volumes are new ones, and what another container lent is mounted by its name.
		differs: words(ownHostname + ` /Mounts/*/Name /Mounts/*/Source /Mounts/*/Mode /HostConfig/Binds/* /HostConfig/VolumesFrom/0
			/HostConfig/Mounts/0/Source /HostConfig/Mounts/0/VolumeOptions/DriverConfig`),
	},
	{
		name: "no network",
		args: words(`--network none busybox sleep 1000`),
		sets: words(`/HostConfig/NetworkMode`), differs: []string{ownHostname},
	},
	{
		name: "network of the host",
		args: words(`--network host busybox sleep 1000`),
		sets: words(`/HostConfig/NetworkMode`),
	},
	{
		name:   "bridge",
		before: []string{"run --detach --name $P-peer busybox sleep 1000"},
		args: words(`--dns 192.0.2.1 --dns-search example.org --dns-option ndots:2 --add-host db:192.0.2.2 --add-host gateway:host-gateway
			--publish 127.0.0.1::80 --publish 81/udp --publish 127.0.0.1:18300-18310:82 --expose 83 --link $P-peer:friend
			busybox sleep 1000`),
		sets: words(`/HostConfig/Dns/0 /HostConfig/DnsSearch/0 /HostConfig/DnsOptions/0 /HostConfig/ExtraHosts/0 /HostConfig/ExtraHosts/1
			/HostConfig/PortBindings/80~1tcp/0/HostIp /HostConfig/PortBindings/82~1tcp/0/HostPort /HostConfig/Links/0`),
		// The copy is a child of its own, with ports that are free and an address that is its own.
		differs: words(ownHostname + ` /HostConfig/Links/* /NetworkSettings/Ports/*/*/HostPort`),
		mayTell: "^WARNING: Links on the default bridge network are deprecated",
	},
	{
		name: "all ports published",
		args: words(`--publish-all --expose 80 --expose 81/udp busybox sleep 1000`),
		sets: words(`/HostConfig/PublishAllPorts /Config/ExposedPorts/80~1tcp /Config/ExposedPorts/81~1udp`), differs: words(ownHostname + ` /NetworkSettings/Ports/*/*/HostPort`),
	},
	{
		name:   "network with alias and fixed addresses",
		before: []string{"network create --subnet 10.99.1.0/24 --ipv6 --subnet fd00:99:1::/64 $P-net"},
		args:   words(`--network $P-net --network-alias other --ip 10.99.1.77 --ip6 fd00:99:1::77 busybox sleep 1000`),
		sets: words(`/HostConfig/NetworkMode /NetworkSettings/Networks/$P-net/Aliases/other /NetworkSettings/Networks/$P-net/IPAMConfig/IPv4Address
			/NetworkSettings/Networks/$P-net/IPAMConfig/IPv6Address`),
		differs: words(ownHostname+` /NetworkSettings/Networks/*/IPAMConfig/* /NetworkSettings/Networks/*/GlobalIPv6Address`, ownNames...),
	},
	{
		name: "network with a fixed hardware address", only: "moby", // the CLI speaks no older way of it
		args: words(`--network name=bridge,mac-address=02:42:c0:a8:00:02 busybox sleep 1000`),
		sets: words(`/NetworkSettings/Networks/bridge/MacAddress`), differs: words(ownHostname + ` /Config/MacAddress`),
	},
	{
		name:    "two networks",
		before:  []string{"network create $P-one", "network create $P-two", "create --name $P-web --network $P-one busybox sleep 1000", "network connect --alias other $P-two $P-web", "start $P-web"},
		sets:    words(`/HostConfig/NetworkMode /NetworkSettings/Networks/$P-one/Gateway /NetworkSettings/Networks/$P-two/Gateway`),
		differs: words(ownHostname+` /NetworkSettings/Networks/*/IPAMConfig`, ownNames...),
	},
	{
		name:    "links in a network",
		before:  []string{"network create $P-net", "run --detach --name $P-peer --network $P-net busybox sleep 1000"},
		args:    words(`--network $P-net --link $P-peer:friend busybox sleep 1000`),
		sets:    words(`/HostConfig/NetworkMode /NetworkSettings/Networks/$P-net/Links/0`),
		differs: words(ownHostname, ownNames...),
	},
	{
		name: "a network that was left",
		before: []string{
			"network create $P-one", "network create $P-two", "create --name $P-web --network $P-one busybox sleep 1000",
			"network connect --alias other $P-two $P-web", "network disconnect $P-one $P-web", "start $P-web",
		},
		sets:    words(`/HostConfig/NetworkMode /NetworkSettings/Networks/$P-two/Gateway`),
		differs: words(ownHostname+` /HostConfig/NetworkMode /NetworkSettings/Networks/*/IPAMConfig /NetworkSettings/Networks/*/DriverOpts`, ownNames...),
	},
	{
		name:    "no network any more",
		before:  []string{"run --detach --name $P-web busybox sleep 1000", "network disconnect bridge $P-web"},
		sets:    words(`/NetworkSettings/Networks`),
		differs: words(ownHostname + ` /HostConfig/NetworkMode /NetworkSettings/Networks /NetworkSettings/Networks/none/*`),
		tells:   []string{"leave out network (bridge|default) "},
	},
	{
		name:   "network of another container",
		before: []string{"run --detach --name $P-peer busybox sleep 1000"},
		args:   words(`--network container:$P-peer busybox sleep 1000`),
		sets:   words(`/HostConfig/NetworkMode`), differs: words(ownHostname + ` /HostConfig/PortBindings`),
	},
	{
		name:    "removed when it ends",
		args:    words(`--rm busybox sleep 1000`),
		sets:    words(`/HostConfig/AutoRemove`),
		differs: []string{ownHostname},
	},
	{
		name: "everything of its image, nothing of its own",
		args: words(`test/app`),
		sets: words(`/Config/Env/0 /Config/Env/1 /Config/Entrypoint/0 /Config/WorkingDir /Config/User /Config/ExposedPorts/8080~1tcp
			/Config/Healthcheck/Test/0 /Config/Labels/test.app /Mounts/~1data/Name`),
		differs: words(ownHostname + ` /State/Health/* /State/Health/Log/*/* /Mounts/*/Name /Mounts/*/Source /Mounts/*/Mode /HostConfig/Binds/0`),
	},
	{
		name: "what only new engines know", only: "moby",
		before: []string{"volume create $P-data", "run --rm --volume $P-data:/data busybox mkdir /data/below"},
		args: words(`--annotation a=b --health-cmd true --health-interval 1h --health-start-interval 3s
			--mount type=volume,src=$P-data,dst=/data,volume-subpath=below --mount type=bind,src=/etc,dst=/etc2,readonly,bind-recursive=writable
			--network name=bridge,driver-opt=com.docker.network.endpoint.sysctls=net.ipv4.conf.IFNAME.log_martians=1 busybox sleep 1000`),
		sets: words(`/HostConfig/Annotations/a /Config/Healthcheck/StartInterval /HostConfig/Mounts/0/VolumeOptions/Subpath
			/HostConfig/Mounts/1/BindOptions/ReadOnlyNonRecursive /NetworkSettings/Networks/bridge/DriverOpts/com.docker.network.endpoint.sysctls`),
		differs: words(ownHostname + ` /State/Health/* /State/Health/Log/*/* /Mounts/*/Name /Mounts/*/Source /HostConfig/Mounts/0/Source /HostConfig/Mounts/0/VolumeOptions/DriverConfig`),
	},
}

// words splits at white space, and appends more.
func words(s string, more ...string) []string { return append(strings.Fields(s), more...) }

func TestRestoreKeepsTheConfiguration(t *testing.T) {
	forEachConfig(t, "config", configCase.run)
}

// forEachConfig runs a test for every case that the engine can do, all of them at once, with a prefix for its names.
func forEachConfig(t *testing.T, word string, test func(tc configCase, t *testing.T, prefix string)) {
	t.Helper()
	for _, tc := range configCases {
		if able, _ := condition(tc.only); tc.only != "" && !able {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			test(tc, t, ownPrefix(t, word))
		})
	}
}

// ownPrefix makes a prefix for names. Everything that bears it is removed after the test.
func ownPrefix(t *testing.T, word string) string {
	t.Helper()
	prefix := fmt.Sprintf("%s-%06x", word, rand.IntN(1<<24))
	t.Cleanup(func() { sweep(context.WithoutCancel(t.Context()), prefix, testLog{t}) })
	return prefix
}

func (tc configCase) run(t *testing.T, prefix string) {
	fill, call := tc.start(t, prefix)
	call("create", "--name", "$P-plain", "busybox", "sh")
	call("snapshot", "create", "--store", "$P-store", "$P-web", "one")
	original := leaves(t, prefix+"-web")
	_, told, err := dockerStreams(os.Environ(), fill(words("snapshot restore --quiet --store $P-store --name $P-copy $P-web:one"))...)
	assert.NilError(t, err)
	checkTold(t, told, tc.tells, tc.mayTell)
	copied, plain := leaves(t, prefix+"-copy"), leaves(t, prefix+"-plain")

	for _, pointer := range fill(tc.sets) {
		// If the options of a case did nothing, it would show nothing.
		_, isPlain := plain[pointer]
		assert.Check(t, !isPlain || original[pointer] != plain[pointer], "%s is as without options: %q", pointer, original[pointer])
		_, isSet := original[pointer]
		assert.Check(t, isSet || isPlain, "%s is not there", pointer)
	}
	checkSame(t, original, copied, append(slices.Clone(alwaysDiffers), tc.differs...))
}

// checkTold compares what a command has said with a pattern for each line, whatever their order, and one for a line
// that need not be there.
func checkTold(t *testing.T, told string, patterns []string, optional string) {
	t.Helper()
	lines := slices.Collect(strings.Lines(told))
	if optional != "" {
		lines = slices.DeleteFunc(lines, regexp.MustCompile(optional).MatchString)
	}
	for _, pattern := range patterns {
		at := slices.IndexFunc(lines, regexp.MustCompile(pattern).MatchString)
		assert.Assert(t, at >= 0, "nothing is said like %q, but:\n%s", pattern, told)
		lines = slices.Delete(lines, at, at+1)
	}
	assert.Check(t, len(lines) == 0, "this, too, is said:\n%s", strings.Join(lines, ""))
}

// start makes the case's container. It returns a function that puts the prefix into words, and one that calls docker with
// such words.
func (tc configCase) start(t *testing.T, prefix string) (fill func([]string) []string, call func(...string)) {
	t.Helper()
	fill = func(args []string) []string {
		return strings.Split(strings.ReplaceAll(strings.Join(args, "\x00"), "$P", prefix), "\x00")
	}
	call = func(args ...string) {
		t.Helper()
		_, err := docker(fill(args)...)
		assert.NilError(t, err)
	}
	for _, command := range tc.before {
		call(strings.Fields(command)...)
	}
	if tc.args != nil {
		call(append([]string{"run", "--detach", "--name", "$P-web"}, tc.args...)...)
	}
	return fill, call
}

// testLog fails a test for what a sweep cannot remove.
type testLog struct{ *testing.T }

func (l testLog) Log(args ...any) { l.Error(args...) }
