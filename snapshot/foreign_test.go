package snapshot

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// hostileHost is an engine on which a stranger's snapshot web:evil claims to be from here.
// It has a container web with the volume own, and what a stranger might want: the
// container db, the volumes victim and cua-snapshots, the network private.
func hostileHost(t *testing.T, h hostile) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	_, err := docker.NetworkCreate(t.Context(), "private", network.CreateOptions{})
	assert.NilError(t, err)
	for _, name := range []string{"victim", "cua-snapshots"} {
		_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: name})
		assert.NilError(t, err)
	}
	docker.Run(t, "db")
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"own:/own", "read:/read:ro"}})
	s := snapshotOf(t, docker, capture.Options{Container: "web", Name: "evil"})
	image := docker.FindImage(s.ImageID).Config
	image.Labels[labels.KeyConfig] = h.label()
	image.Labels[labels.KeyMounts] = h.mounts
	docker.Randomness = 100
	docker.ForgetCalls()
	return docker
}

// hostile is a snapshot that asks for something.
type hostile struct {
	config, host, networks string // JSON objects; empty: none
	mounts                 string // JSON list
	want                   string // what is asked for, in order, separated by blanks
	inPlace                string // what is asked for in place, if that is something else
}

func (h hostile) label() string {
	or := func(text, otherwise string) string {
		if text == "" {
			return otherwise
		}
		return text
	}
	return `{"Config":` + or(h.config, `{"Cmd":["x"]}`) + `,"HostConfig":` + or(h.host, `{}`) + `,"NetworkingConfig":{"EndpointsConfig":` + or(h.networks, `{}`) + `}}`
}

// nothing is the want of a snapshot that gets nothing although nothing is refused.
const nothing = "nothing"

func archived(name, rest string) string {
	return `[{"type":"volume","name":"` + name + `","destination":"/v","rw":true,` + rest + `"archive":{"root":"` + strings.Repeat("0f", 32) + `","entries":2,"index":0}}]`
}

// hostiles are snapshots that want something of this engine or its host.
var hostiles = map[string]hostile{
	"privileged":                       {host: `{"Privileged":true}`, want: "privileged"},
	"privileged, spelled otherwise":    {host: `{"Privileged":false,"pRIVILEGED":true}`, want: "privileged"},
	"all capabilities":                 {host: `{"CapAdd":["ALL"]}`, want: "cap-add=ALL"},
	"a capability":                     {host: `{"CapAdd":["CHOWN","cap_sys_admin"]}`, want: "cap-add=SYS_ADMIN"},
	"several capabilities":             {host: `{"CapAdd":["SYS_MODULE","SYS_PTRACE"]}`, want: "cap-add=SYS_MODULE cap-add=SYS_PTRACE"},
	"the host's network":               {host: `{"NetworkMode":"host"}`, want: "network=host"},
	"another's network":                {host: `{"NetworkMode":"container:db"}`, want: "network=container:db"},
	"a private network":                {host: `{"NetworkMode":"private"}`, networks: `{"private":{}}`, want: "network=private"},
	"a private network beside another": {host: `{"NetworkMode":"bridge"}`, networks: `{"bridge":{},"private":{}}`, want: "network=private"},
	"the host's network beside":        {host: `{"NetworkMode":"bridge"}`, networks: `{"bridge":{},"host":{}}`, want: "network=host"},
	"a network by its ID":              {host: `{"NetworkMode":"0123456789ab"}`, networks: `{"0123456789ab":{}}`, want: "network=0123456789ab"},
	"an option of a network":           {host: `{"NetworkMode":"bridge"}`, networks: `{"bridge":{"DriverOpts":{"com.docker.network.endpoint.sysctls":"x"}}}`, want: "network-opt=com.docker.network.endpoint.sysctls"},
	"links":                            {host: `{"Links":["db:db","/web:/x/y"]}`, want: "link=db link=web"},
	"links in a network":               {host: `{"NetworkMode":"private"}`, networks: `{"private":{"Links":["db:db"]}}`, want: "network=private link=db"},
	"the host's processes":             {host: `{"PidMode":"host"}`, want: "pid=host"},
	"another's processes":              {host: `{"PidMode":"container:db"}`, want: "pid=container:db"},
	"the host's shared memory":         {host: `{"IpcMode":"host"}`, want: "ipc=host"},
	"another's shared memory":          {host: `{"IpcMode":"container:db"}`, want: "ipc=container:db"},
	"what follows from that":           {host: `{"PidMode":"host","SecurityOpt":["label=disable"]}`, want: "pid=host"},
	"the host's name":                  {host: `{"UTSMode":"host"}`, want: "uts=host"},
	"the host's users":                 {host: `{"UsernsMode":"host"}`, want: "userns=host"},
	"the host's control groups":        {host: `{"CgroupnsMode":"host"}`, want: "cgroupns=host"},
	"another's control group":          {host: `{"Cgroup":"container:db"}`, want: "cgroup=container:db"},
	"a control group":                  {host: `{"CgroupParent":"/system.slice"}`, want: "cgroup-parent=/system.slice"},
	"a disk":                           {host: `{"Devices":[{"PathOnHost":"/dev/sda"}]}`, want: "device=/dev/sda"},
	"a device by another path":         {host: `{"Devices":[{"PathOnHost":"/srv/../dev/mem"}]}`, want: "device=/srv/../dev/mem"},
	"all devices by a rule":            {host: `{"DeviceCgroupRules":["a *:* rwm"]}`, want: "device-cgroup-rule=a *:* rwm"},
	"GPUs":                             {host: `{"DeviceRequests":[{"Count":-1}]}`, want: "gpus"},
	"devices of a driver":              {host: `{"DeviceRequests":[{"Driver":"cdi","DeviceIDs":["vendor.com/x=all"]}]}`, want: "gpus=cdi"},
	"no seccomp":                       {host: `{"SecurityOpt":["seccomp=unconfined"]}`, want: "security-opt=seccomp=unconfined"},
	"no seccomp, with a colon":         {host: `{"SecurityOpt":["seccomp:unconfined"]}`, want: "security-opt=seccomp=unconfined"},
	"a seccomp profile that lists all": {host: `{"SecurityOpt":["seccomp={\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":[\"mount\",\"bpf\"],\"action\":\"SCMP_ACT_ALLOW\"}]}"]}`, want: "security-opt=seccomp"},
	"a seccomp profile that allows":    {host: `{"SecurityOpt":["seccomp={\"defaultAction\":\"SCMP_ACT_ALLOW\"}"]}`, want: "security-opt=seccomp"},
	"the built-in seccomp profile":     {host: `{"SecurityOpt":["seccomp=builtin"]}`, want: "security-opt=seccomp"},
	"no AppArmor":                      {host: `{"SecurityOpt":["apparmor=unconfined"]}`, want: "security-opt=apparmor=unconfined"},
	"another AppArmor profile":         {host: `{"SecurityOpt":["apparmor:libvirtd"]}`, want: "security-opt=apparmor=libvirtd"},
	"no SELinux":                       {host: `{"SecurityOpt":["label=disable"]}`, want: "security-opt=label=disable"},
	"another SELinux type":             {host: `{"SecurityOpt":["label:type:spc_t"]}`, want: "security-opt=label=type:spc_t"},
	"new privileges":                   {host: `{"SecurityOpt":["no-new-privileges=false"]}`, want: "security-opt=no-new-privileges=false"},
	"writable control groups":          {host: `{"SecurityOpt":["writable-cgroups=true"]}`, want: "security-opt=writable-cgroups=true"},
	"all of /proc":                     {host: `{"MaskedPaths":[],"ReadonlyPaths":[]}`, want: "security-opt=systempaths=unconfined"},
	"some of /proc":                    {host: `{"MaskedPaths":["/proc/kcore"]}`, want: "security-opt=systempaths=unconfined"},
	"writable /proc/irq":               {host: `{"ReadonlyPaths":["/proc/bus","/proc/fs","/proc/sys","/proc/sysrq-trigger"]}`, want: "security-opt=systempaths=unconfined"},
	"never to be killed":               {host: `{"OomScoreAdj":-1000}`, want: "oom-score-adj=-1000"},
	"no OOM killer":                    {host: `{"OomKillDisable":true}`, want: "oom-kill-disable"},
	"realtime":                         {host: `{"CpuRealtimeRuntime":950000,"CpuRealtimePeriod":1000000}`, want: "cpu-rt=1000000 cpu-rt=950000"},
	"realtime by a limit":              {host: `{"Ulimits":[null,{"Name":"rtprio","Hard":99,"Soft":99},{"Name":"nofile","Hard":9,"Soft":9}]}`, want: "ulimit=rtprio"},
	"a kernel parameter":               {host: `{"Sysctls":{"kernel.core_pattern":"|/x","net.core.somaxconn":"1"}}`, want: "sysctl=kernel.core_pattern"},
	"another runtime":                  {host: `{"Runtime":"nvidia"}`, want: "runtime=nvidia"},
	"a runtime by its path":            {host: `{"Runtime":"/tmp/evil"}`, want: "runtime=/tmp/evil"},
	"annotations":                      {host: `{"Annotations":{"io.katacontainers.config.hypervisor.path":"/x"}}`, want: "annotation=io.katacontainers.config.hypervisor.path"},
	"logs to an address":               {host: `{"LogConfig":{"Type":"syslog","Config":{"syslog-address":"tcp://10.0.0.1:1"}}}`, want: "log-driver=syslog"},
	"logs to a file":                   {host: `{"LogConfig":{"Type":"fluentd","Config":{"fluentd-address":"unix:///run/x"}}}`, want: "log-driver=fluentd"},
	"logs into the host's":             {host: `{"LogConfig":{"Type":"journald","Config":{"tag":"sudo"}}}`, want: "log-driver=journald"},
	"a storage option":                 {host: `{"StorageOpt":{"size":"1G","dm.x":"y"}}`, want: "storage-opt=dm.x"},
	"no isolation":                     {host: `{"Isolation":"process"}`, want: "isolation=process"},
	"another's volumes":                {host: `{"VolumesFrom":["db:rw"]}`, want: nothing, inPlace: "volumes-from=db"},
	"another's volumes, by the label":  {host: `{"VolumesFrom":["db"]}`, mounts: `[{"type":"bind","source":"/root","destination":"/r","rw":true}]`, want: "bind=/root", inPlace: "volumes-from=db"},
	"a path by a volume's name":        {host: `{"VolumesFrom":["db"]}`, mounts: `[{"type":"npipe","name":"/etc","destination":"/r","rw":true}]`, want: "bind=/etc", inPlace: "volumes-from=db"},

	"the root":                    {host: `{"Binds":["/:/host"]}`, want: "bind=/"},
	"the root, not clean":         {host: `{"Binds":["//:/host:ro"]}`, want: "bind=//"},
	"a path that goes up":         {host: `{"Binds":["/etc/localtime/../shadow:/x:ro"]}`, want: "bind=/etc/localtime/../shadow"},
	"keys of a user":              {host: `{"Binds":["/home/x/.ssh:/k"]}`, want: "bind=/home/x/.ssh"},
	"the crontabs":                {host: `{"Binds":["/var/spool/cron:/c"]}`, want: "bind=/var/spool/cron"},
	"the engine's data":           {host: `{"Binds":["/srv/docker:/d"]}`, want: "bind=/srv/docker"},
	"the engine's socket":         {host: `{"Binds":["/var/run/docker.sock:/s"]}`, want: "bind=/var/run/docker.sock"},
	"a socket":                    {host: `{"Binds":["/run/dbus:/d:ro"]}`, want: "bind=/run/dbus"},
	"any directory":               {host: `{"Binds":["/srv/app:/app"]}`, want: "bind=/srv/app"},
	"a harmless path, writable":   {host: `{"Binds":["/etc/localtime:/t"]}`, want: nothing, inPlace: "bind=/etc/localtime"},
	"a harmless path, relabelled": {host: `{"Binds":["/etc/ssl/certs:/t:ro,z"]}`, want: "bind=/etc/ssl/certs"},
	"what only begins so":         {host: `{"Binds":["/etc/localtimes:/t:ro"]}`, want: "bind=/etc/localtimes"},
	"shared mounts":               {host: `{"Binds":["/srv:/srv:rshared"]}`, want: "bind-propagation=rshared bind=/srv"},
	"a path of Windows":           {host: `{"Binds":["C:\\Users:D:\\x"]}`, want: `bind=C:\Users:D:\x`},
	"a relative path":             {host: `{"Binds":["../etc:/x"]}`, want: `bind=../etc:/x`},
	"no path at all":              {host: `{"Binds":["x"]}`, want: `bind=x`},
	"a mounted path":              {host: `{"Mounts":[{"Type":"bind","Source":"/srv","Target":"/x"}]}`, want: "bind=/srv"},
	"a mounted path, made":        {host: `{"Mounts":[{"Type":"bind","Source":"/root/.ssh/new","Target":"/x","BindOptions":{"CreateMountpoint":true}}]}`, want: "bind=/root/.ssh/new"},
	"a mounted path that is shared": {
		host: `{"Mounts":[{"Type":"bind","Source":"/srv","Target":"/x","ReadOnly":true,"BindOptions":{"Propagation":"rshared"}}]}`,
		want: "bind=/srv bind-propagation=rshared",
	},
	"a harmless path, what is below writable": {
		host: `{"Mounts":[{"Type":"bind","Source":"/etc/ssl/certs","Target":"/x","ReadOnly":true,"BindOptions":{"ReadOnlyNonRecursive":true}}]}`, want: "bind=/etc/ssl/certs",
	},
	"a mount of no type":       {host: `{"Mounts":[{"Source":"/srv","Target":"/x"}]}`, want: "bind=/srv"},
	"a pipe":                   {host: `{"Mounts":[{"Type":"npipe","Source":"//./pipe/docker_engine","Target":"/x"}]}`, want: "field=Mount.Type.npipe bind=//./pipe/docker_engine"},
	"a volume of the cluster":  {host: `{"Mounts":[{"Type":"cluster","Source":"x","Target":"/x"}]}`, want: "field=Mount.Type.cluster bind=x"},
	"another image":            {host: `{"Mounts":[{"Type":"image","Source":"secrets:latest","Target":"/x"}]}`, want: "image=secrets:latest"},
	"a volume that is here":    {host: `{"Binds":["victim:/v"]}`, want: "volume=victim"},
	"one to read":              {host: `{"Binds":["victim:/v:ro"]}`, want: "volume=victim"},
	"one by a mount":           {host: `{"Mounts":[{"Type":"volume","Source":"victim","Target":"/v"}]}`, want: "volume=victim"},
	"the store":                {host: `{"Binds":["cua-snapshots:/v"]}`, want: "volume=cua-snapshots"},
	"the engine's key":         {host: `{"Binds":["cua-snapshot-key:/v"]}`, want: "volume=cua-snapshot-key"},
	"a volume only to read":    {host: `{"Binds":["read:/v"]}`, want: "volume=read"},
	"a driver of volumes":      {config: `{"Cmd":["x"],"Volumes":{"/v":{}}}`, host: `{"VolumeDriver":"rexray"}`, want: "volume-driver=rexray"},
	"a driver by a mount":      {host: `{"Mounts":[{"Type":"volume","Target":"/v","VolumeOptions":{"DriverConfig":{"Name":"sshfs","Options":{"sshcmd":"x"}}}}]}`, want: "volume-driver=sshfs volume-opt=sshcmd=x"},
	"a disk by a mount":        {host: `{"Mounts":[{"Type":"volume","Target":"/v","VolumeOptions":{"DriverConfig":{"Options":{"type":"ext4","device":"/dev/sda1"}}}}]}`, want: "volume-opt=device=/dev/sda1 volume-opt=type=ext4"},
	"/proc by a mount":         {host: `{"Mounts":[{"Type":"volume","Target":"/v","VolumeOptions":{"DriverConfig":{"Name":"local","Options":{"type":"proc","device":"proc"}}}}]}`, want: "volume-opt=device=proc volume-opt=type=proc"},
	"a share by a mount":       {host: `{"Mounts":[{"Type":"volume","Target":"/v","VolumeOptions":{"DriverConfig":{"Options":{"type":"nfs","device":":/x","o":"addr=10.0.0.1"}}}}]}`, want: "volume-opt=device=:/x volume-opt=o=addr=10.0.0.1 volume-opt=type=nfs"},
	"memory that is something": {host: `{"Mounts":[{"Type":"volume","Target":"/v","VolumeOptions":{"DriverConfig":{"Options":{"type":"tmpfs","device":"tmpfs","o":"bind"}}}}]}`, want: "volume-opt=device=tmpfs volume-opt=o=bind volume-opt=type=tmpfs"},

	// By the label of the mounts: a copy gets plain volumes of its own.
	"a directory by the label":         {mounts: archived("new", `"driver":"local","options":{"type":"none","o":"bind","device":"/etc"},`), want: nothing, inPlace: "volume-opt=device=/etc volume-opt=o=bind volume-opt=type=none"},
	"a relative one by the label":      {mounts: archived("new", `"options":{"type":"none","o":"bind","device":"../../etc"},`), want: nothing, inPlace: "volume-opt=device=../../etc volume-opt=o=bind volume-opt=type=none"},
	"/sys by the label":                {mounts: archived("new", `"options":{"type":"sysfs","device":"sysfs"},`), want: nothing, inPlace: "volume-opt=device=sysfs volume-opt=type=sysfs"},
	"/dev by the label":                {mounts: archived("new", `"options":{"type":"devtmpfs","device":"x"},`), want: nothing, inPlace: "volume-opt=device=x volume-opt=type=devtmpfs"},
	"control groups by the label":      {mounts: archived("new", `"options":{"type":"cgroup","device":"x"},`), want: nothing, inPlace: "volume-opt=device=x volume-opt=type=cgroup"},
	"an overlay by the label":          {mounts: archived("new", `"options":{"type":"overlay","device":"x","o":"lowerdir=/etc"},`), want: nothing, inPlace: "volume-opt=device=x volume-opt=o=lowerdir=/etc volume-opt=type=overlay"},
	"only options by the label":        {mounts: archived("new", `"options":{"o":"bind"},`), want: "volume-opt=o=bind"},
	"a driver by the label":            {mounts: archived("new", `"driver":"sshfs","options":{"sshcmd":"x"},`), want: nothing, inPlace: "volume-driver=sshfs volume-opt=sshcmd=x"},
	"a volume that is here, rewritten": {mounts: archived("victim", ""), want: nothing, inPlace: "volume=victim"},
	"the store, rewritten":             {mounts: archived("cua-snapshots", ""), want: nothing, inPlace: "volume=cua-snapshots"},
	"the key, made by a stranger":      {mounts: archived("cua-snapshot-key", `"labels":{"cua.snapshot.key":"00"},`), want: nothing, inPlace: "volume=cua-snapshot-key"},
	"what is only read, rewritten":     {mounts: archived("read", ""), want: nothing, inPlace: "volume=read"},
	"a path for a volume's name":       {mounts: archived("/etc", ""), want: "volume=/etc-000065 bind=/etc-000065", inPlace: "bind=/etc"},
	"options in a volume's name":       {mounts: archived("victim:/v:ro", ""), want: "volume=victim:/v:ro-000065 volume=victim", inPlace: "volume=victim:/v:ro"},
	"a bind by the label is nothing":   {mounts: `[{"type":"bind","source":"/etc","destination":"/x","rw":true}]`, want: nothing},
}

// harmlessOnes are snapshots from elsewhere that come back without a question.
var harmlessOnes = map[string]hostile{
	"nothing":            {},
	"what runs":          {config: `{"Hostname":"h","User":"0","Env":["A=1"],"Cmd":["x"],"Healthcheck":{"Test":["CMD","x"]},"StopTimeout":5,"Labels":{"a":"b"},"Volumes":{"/v":{}},"ExposedPorts":{"80/tcp":{}}}`},
	"capabilities":       {host: `{"CapAdd":["CHOWN","CAP_SETUID","net_raw"],"CapDrop":["ALL"]}`},
	"limits":             {host: `{"Memory":9000000,"NanoCpus":1000,"PidsLimit":5,"OomScoreAdj":500,"OomKillDisable":false,"Ulimits":[{"Name":"nofile","Hard":9,"Soft":9}],"ShmSize":1,"StorageOpt":{"size":"1G"}}`},
	"own namespaces":     {host: `{"NetworkMode":"bridge","IpcMode":"private","CgroupnsMode":"private","Runtime":"runc"}`, networks: `{"bridge":{"Gateway":"1.2.3.4","NetworkID":"x"}}`},
	"ports":              {host: `{"PortBindings":{"80/tcp":[{"HostPort":"80"}]},"PublishAllPorts":true}`},
	"protections":        {host: `{"SecurityOpt":["no-new-privileges","apparmor=docker-default"],"ReadonlyRootfs":true,"Init":true}`},
	"logs":               {host: `{"LogConfig":{"Type":"json-file","Config":{"max-size":"1m"}}}`},
	"parameters":         {host: `{"Sysctls":{"net.core.somaxconn":"1","kernel.shmmax":"1"}}`},
	"memory":             {host: `{"Tmpfs":{"/t":"size=1m"},"Mounts":[{"Type":"tmpfs","Target":"/u","TmpfsOptions":{"SizeBytes":9}}]}`},
	"the time zone":      {host: `{"Binds":["/etc/localtime:/etc/localtime:ro","/usr/share/zoneinfo/UTC:/x:ro"]}`},
	"certificates":       {host: `{"Mounts":[{"Type":"bind","Source":"/etc/ssl/certs","Target":"/c","ReadOnly":true}]}`},
	"a new volume":       {host: `{"Binds":["new:/v"]}`, mounts: archived("new", `"driver":"local",`)},
	"a volume in memory": {host: `{"Binds":["new:/v"]}`, mounts: archived("new", `"options":{"type":"tmpfs","device":"tmpfs","o":"size=1m,uid=5"},`)},
	"its own volume":     {host: `{"Binds":["own:/own"]}`, mounts: strings.Replace(archived("own", ""), `"/v"`, `"/own"`, 1)},
}

// asksOf are the things asked for that a restore was refused because of.
func asksOf(t *testing.T, err error) string {
	t.Helper()
	var asked []string
	if problems, ok := errors.AsType[*plan.ProblemsError](err); ok {
		for _, p := range problems.Problems {
			if p.Kind == plan.ProblemHostAccess {
				asked = append(asked, p.Subject)
			}
		}
	}
	if len(asked) == 0 {
		return nothing
	}
	return strings.Join(asked, " ")
}

func (h hostile) wanted(inPlace bool) string {
	if inPlace && h.inPlace != "" {
		return h.inPlace
	}
	return h.want
}

// restoreEvil restores web:evil, as a copy or in place.
func restoreEvil(t *testing.T, docker *enginetest.Docker, o runconfig.RestoreOptions, inPlace bool) error {
	t.Helper()
	o.Snapshot = "web:evil"
	if inPlace {
		_, err := engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: o}, nil)
		return err
	}
	_, err := engineOf(docker).Restore(t.Context(), o, nil)
	return err
}

func TestNoStrangerGetsAnythingUnasked(t *testing.T) {
	assert.Assert(t, len(hostiles) >= 80, len(hostiles))
	for name, h := range hostiles {
		for _, inPlace := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", in place"}[inPlace], func(t *testing.T) {
				docker := hostileHost(t, h)
				before := docker.World()
				err := restoreEvil(t, docker, runconfig.RestoreOptions{DryRun: true}, inPlace)
				assert.Equal(t, asksOf(t, err), h.wanted(inPlace), "%v", err)
				assert.Equal(t, docker.World(), before)
				err = restoreEvil(t, docker, runconfig.RestoreOptions{}, inPlace)
				if h.wanted(inPlace) != nothing {
					assert.Equal(t, asksOf(t, err), h.wanted(inPlace))
					assert.Equal(t, docker.World(), before)
				}
			})
		}
	}
}

// What a problem names is what allows it: each ask by itself, and all of them.
func TestWhatTheUserAllowsIsNotAskedForAgain(t *testing.T) {
	for name, h := range hostiles {
		for _, inPlace := range []bool{false, true} {
			docker := hostileHost(t, h)
			problems, ok := errors.AsType[*plan.ProblemsError](restoreEvil(t, docker, runconfig.RestoreOptions{DryRun: true}, inPlace))
			if !ok {
				continue
			}
			var allow []runconfig.Access
			for _, p := range problems.Problems {
				if p.Kind != plan.ProblemHostAccess {
					continue
				}
				a, err := runconfig.ParseAccess(p.Subject)
				assert.NilError(t, err)
				allow = append(allow, a)
			}
			for i := range allow {
				asked := strings.Fields(asksOf(t, restoreEvil(t, docker, runconfig.RestoreOptions{DryRun: true, Allow: slices.Delete(slices.Clone(allow), i, i+1)}, inPlace)))
				assert.DeepEqual(t, asked, strings.Fields(allow[i].String()))
			}
			assert.Equal(t, asksOf(t, restoreEvil(t, docker, runconfig.RestoreOptions{DryRun: true, Allow: allow}, inPlace)), nothing, name)
			assert.Equal(t, asksOf(t, restoreEvil(t, docker, runconfig.RestoreOptions{DryRun: true, AllowHostAccess: true}, inPlace)), nothing, name)
		}
	}
}

func TestWhatIsHarmlessNeedsNoAsking(t *testing.T) {
	for name, h := range harmlessOnes {
		for _, inPlace := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", in place"}[inPlace], func(t *testing.T) {
				docker := hostileHost(t, h)
				docker.HostPaths["/etc/localtime"], docker.HostPaths["/usr/share/zoneinfo/UTC"], docker.HostPaths["/etc/ssl/certs"] = true, true, true
				assert.Equal(t, asksOf(t, restoreEvil(t, docker, runconfig.RestoreOptions{DryRun: true}, inPlace)), nothing)
			})
		}
	}
}

// The user's own words are no stranger's.
func TestANetworkThatTheUserNamesNeedsNoAsking(t *testing.T) {
	docker := hostileHost(t, hostiles["the host's network"])
	assert.Equal(t, asksOf(t, restoreEvil(t, docker, runconfig.RestoreOptions{DryRun: true, Networks: []string{"private"}}, false)), nothing)
}

// What was made here, its owner had the power for already.
func TestASealedSnapshotNeedsNoAsking(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Privileged: true, PidMode: "host", Binds: []string{"/:/host"}})
	s := snapshotOf(t, docker, capture.Options{Container: "web", Name: "evil"})
	assert.Equal(t, asksOf(t, restoreEvil(t, docker, runconfig.RestoreOptions{DryRun: true}, false)), nothing)

	seal := docker.FindImage(s.ImageID).Config.Labels[labels.KeySeal]
	for name, change := range map[string]func(){
		"no seal":        func() { docker.FindImage(s.ImageID).Config.Labels[labels.KeySeal] = "" },
		"another seal":   func() { docker.FindImage(s.ImageID).Config.Labels[labels.KeySeal] = strings.Repeat("00", 32) },
		"another engine": func() { docker.About.ID = "engine-2" },
		"another key": func() {
			docker.FindVolume(catalog.KeyVolume).Labels[catalog.LabelKey] = strings.Repeat("0", len(enginetest.EngineKey))
		},
		"no key":          func() { docker.Volumes = nil },
		"another setting": func() { docker.FindImage(s.ImageID).Config.Labels[labels.KeyDescription] = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			change()
			assert.Equal(t, asksOf(t, restoreEvil(t, docker, runconfig.RestoreOptions{DryRun: true}, false)), "bind=/ pid=host privileged")
			docker.About.ID = "engine-1"
			docker.Volumes = []*enginetest.FakeVolume{{Name: catalog.KeyVolume, Labels: map[string]string{catalog.LabelKey: enginetest.EngineKey}}}
			docker.FindImage(s.ImageID).Config.Labels[labels.KeySeal] = seal
			docker.FindImage(s.ImageID).Config.Labels[labels.KeyDescription] = ""
		})
	}
}

// Workers and their journals are known by their labels. None of these comes from a
// snapshot: not from its configuration, its mounts or its image.
func TestNoLabelOfOursComesFromASnapshot(t *testing.T) {
	planted := `{"a":"b","cua.snapshot.worker.purpose":"restore","cua.snapshot.worker.replace":"{}","cua.snapshot.policy.binds":"known","cua.snapshot.restored-from":"x","cua.snapshot.restored-at":"x","cua.snapshot.key":"00","cua.snapshot.operation":"00"}`
	h := hostile{
		config: `{"Cmd":["x"],"Labels":` + planted + `}`,
		host:   `{"Mounts":[{"Type":"volume","Source":"later","Target":"/l","VolumeOptions":{"Labels":` + planted + `}}]}`,
		mounts: strings.Replace(archived("new", `"labels":`+planted+`,`), `"/v"`, `"/own"`, 1),
	}
	for _, inPlace := range []bool{false, true} {
		docker := hostileHost(t, h)
		image := docker.FindImage("cua-snapshot/web:evil").Config
		image.Labels["cua.snapshot.worker.kept"] = "true"
		id := image.Labels[labels.KeyID]
		assert.NilError(t, restoreEvil(t, docker, runconfig.RestoreOptions{SkipMissing: true, Start: runconfig.StartNever}, inPlace))

		c := docker.FindContainer(map[bool]string{false: "web-000065", true: "web"}[inPlace])
		_, err := time.Parse(time.RFC3339Nano, c.Config.Labels[labels.KeyRestoredAt]) // ours, whatever was planted
		assert.NilError(t, err)
		own := labels.Users(c.Config.Labels)
		assert.DeepEqual(t, own, map[string]string{"a": "b"})
		for key, value := range c.Config.Labels {
			known := map[string]string{labels.KeyRestoredFrom: id, labels.KeyRestoredAt: c.Config.Labels[labels.KeyRestoredAt], "a": "b"}
			if !inPlace {
				known[labels.KeyCopyOf] = id
			}
			if _, err := labels.ParseID(c.Config.Labels[labels.KeyUndo]); err == nil && inPlace {
				known[labels.KeyUndo] = c.Config.Labels[labels.KeyUndo]
			}
			assert.Equal(t, value, known[key], key)
		}
		assert.DeepEqual(t, c.Host.Mounts[0].VolumeOptions.Labels, map[string]string{"a": "b"})
		for _, v := range docker.Volumes {
			if strings.HasPrefix(v.Name, "new") {
				delete(v.Labels, labels.KeyVersion)
				assert.Assert(t, v.Labels[labels.KeyRestoredFrom] != "x" && v.Labels[labels.KeyOperation] != "00")
				delete(v.Labels, labels.KeyRestoredFrom)
				delete(v.Labels, labels.KeyRestoredAt)
				delete(v.Labels, labels.KeyOperation)
				assert.DeepEqual(t, v.Labels, map[string]string{"a": "b"})
			}
		}
	}
}

// The policies that users have set on containers of their own are theirs.
func TestPoliciesOfOnesOwnComeBack(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{Labels: map[string]string{"cua.snapshot.policy.binds": "known", "cua.snapshot.worker.purpose": "x"}}, &container.HostConfig{})
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	restored, _ := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:one"})
	have := docker.FindContainer(restored.ContainerID).Config.Labels
	assert.Equal(t, have["cua.snapshot.policy.binds"], "known")
	assert.Equal(t, have["cua.snapshot.worker.purpose"], "")
}

// Two clients that make the first snapshot of an engine at once get one key.
func TestTheEnginesKeyIsMadeOnce(t *testing.T) {
	docker := enginetest.New()
	docker.Volumes = nil
	first, err := engineOf(docker).catalog.EngineKey(t.Context())
	assert.NilError(t, err)
	docker.Randomness = 7
	second, err := engineOf(docker).catalog.EngineKey(t.Context())
	assert.NilError(t, err)
	assert.DeepEqual(t, first, second)
	docker.FindVolume(catalog.KeyVolume).Labels = map[string]string{"owner": "somebody"}
	_, err = engineOf(docker).catalog.EngineKey(t.Context())
	assert.ErrorContains(t, err, "volume cua-snapshot-key holds no key")
}

// An engine that is killed while it makes the volume of the key leaves it without labels.
func TestTheEnginesKeyIsMadeAgain(t *testing.T) {
	docker := enginetest.New()
	docker.Volumes = []*enginetest.FakeVolume{{Name: catalog.KeyVolume}}
	cat := engineOf(docker).catalog
	known, err := cat.KnownKey(t.Context())
	assert.NilError(t, err)
	assert.Assert(t, known == nil)
	made, err := cat.EngineKey(t.Context())
	assert.NilError(t, err)
	known, err = cat.KnownKey(t.Context())
	assert.NilError(t, err)
	assert.DeepEqual(t, known, made)
	assert.Equal(t, len(docker.Volumes), 1) // no lock
}
