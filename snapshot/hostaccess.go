package snapshot

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Access is one thing that gives a container power over the engine, its host or
// other containers, and that a foreign snapshot therefore only gets if the user
// allows it.
type Access struct {
	Kind  AccessKind
	Value string // which one; in what the user allows, empty means each of this kind
}

// AccessKind is named after the flag of docker run that asks for the same, if
// there is one.
type AccessKind string

// The kinds of access, as [AccessKinds] explains them.
const (
	AccessPrivileged     AccessKind = "privileged"
	AccessCapability     AccessKind = "cap-add"
	AccessSecurity       AccessKind = "security-opt"
	AccessBind           AccessKind = "bind"
	AccessPropagation    AccessKind = "bind-propagation"
	AccessVolume         AccessKind = "volume"
	AccessVolumeDriver   AccessKind = "volume-driver"
	AccessVolumeOption   AccessKind = "volume-opt"
	AccessVolumesFrom    AccessKind = "volumes-from"
	AccessImage          AccessKind = "image"
	AccessDevice         AccessKind = "device"
	AccessDeviceRule     AccessKind = "device-cgroup-rule"
	AccessDeviceRequest  AccessKind = "gpus"
	AccessNetwork        AccessKind = "network"
	AccessNetworkOption  AccessKind = "network-opt"
	AccessLink           AccessKind = "link"
	AccessPID            AccessKind = "pid"
	AccessIPC            AccessKind = "ipc"
	AccessUTS            AccessKind = "uts"
	AccessUserNamespace  AccessKind = "userns"
	AccessCgroupns       AccessKind = "cgroupns"
	AccessCgroup         AccessKind = "cgroup"
	AccessCgroupParent   AccessKind = "cgroup-parent"
	AccessRealtime       AccessKind = "cpu-rt"
	AccessOOMScore       AccessKind = "oom-score-adj"
	AccessOOMKillDisable AccessKind = "oom-kill-disable"
	AccessUlimit         AccessKind = "ulimit"
	AccessSysctl         AccessKind = "sysctl"
	AccessRuntime        AccessKind = "runtime"
	AccessAnnotation     AccessKind = "annotation"
	AccessLogDriver      AccessKind = "log-driver"
	AccessStorageOption  AccessKind = "storage-opt"
	AccessIsolation      AccessKind = "isolation"
	AccessField          AccessKind = "field"
)

// AccessKindInfo says what a kind of access is, for people.
type AccessKindInfo struct {
	Kind  AccessKind
	Means string
}

// AccessKinds explains every kind of access.
func AccessKinds() []AccessKindInfo {
	return []AccessKindInfo{
		{AccessPrivileged, "all power over the host"},
		{AccessCapability, "a capability that containers do not have by default"},
		{AccessSecurity, "a security option"},
		{AccessBind, "a path of the host, and what is below it"},
		{AccessPropagation, "mounts that propagate between host and container"},
		{AccessVolume, "a volume that is here already"},
		{AccessVolumeDriver, "a volume driver"},
		{AccessVolumeOption, "an option of a volume's driver"},
		{AccessVolumesFrom, "the volumes of another container"},
		{AccessImage, "the files of another image"},
		{AccessDevice, "a device of the host"},
		{AccessDeviceRule, "a rule that opens devices"},
		{AccessDeviceRequest, "GPUs, or what another device driver has"},
		{AccessNetwork, "a network that users made, the host's, or another container's"},
		{AccessNetworkOption, "an option of a network's driver"},
		{AccessLink, "a link to another container"},
		{AccessPID, "processes of the host or of another container"},
		{AccessIPC, "shared memory of the host or of another container"},
		{AccessUTS, "the host's name"},
		{AccessUserNamespace, "the host's user IDs"},
		{AccessCgroupns, "the host's control groups"},
		{AccessCgroup, "the control group of another container"},
		{AccessCgroupParent, "a control group of the host to run in"},
		{AccessRealtime, "realtime scheduling"},
		{AccessOOMScore, "to be spared when the host's memory runs out"},
		{AccessOOMKillDisable, "never to be killed when memory runs out"},
		{AccessUlimit, "a limit that gives precedence over other processes"},
		{AccessSysctl, "a kernel parameter that is not the container's own"},
		{AccessRuntime, "a runtime that is not the engine's default"},
		{AccessAnnotation, "an annotation, which a runtime may act on"},
		{AccessLogDriver, "a log driver that writes elsewhere"},
		{AccessStorageOption, "an option of the storage driver"},
		{AccessIsolation, "an isolation technology"},
		{AccessField, "a setting of which this version does not know what it does"},
	}
}

// means is what AccessKinds says of the kind.
func (k AccessKind) means() string {
	for _, info := range AccessKinds() {
		if info.Kind == k {
			return info.Means
		}
	}
	return ""
}

// ParseAccess reads KIND or KIND=VALUE.
func ParseAccess(text string) (Access, error) {
	kind, value, _ := strings.Cut(text, "=")
	a := Access{Kind: AccessKind(kind), Value: value}
	if a.Kind.means() == "" {
		return Access{}, fmt.Errorf("unknown kind of access %q", kind)
	}
	return a, nil
}

// String is what [ParseAccess] reads.
func (a Access) String() string {
	if a.Value == "" {
		return string(a.Kind)
	}
	return string(a.Kind) + "=" + a.Value
}

// covers tells whether allowing a allows what is asked for, too. A path of the host
// allows what is below it.
func (a Access) covers(asked Access) bool {
	if a.Kind != asked.Kind {
		return false
	}
	if a.Value == "" || a.Value == asked.Value {
		return true
	}
	arePaths := a.Kind == AccessBind || a.Kind == AccessDevice
	return arePaths && isClean(asked.Value) && isBelow(asked.Value, path.Clean(a.Value))
}

// isClean tells whether a path means what it says: behind a symlink, .. may lead
// anywhere.
func isClean(text string) bool { return strings.HasPrefix(text, "/") && path.Clean(text) == text }

// isBelow tells whether a path is the given directory, or in it.
func isBelow(text, directory string) bool {
	return text == directory || strings.HasPrefix(text, strings.TrimSuffix(directory, "/")+"/")
}

// allows tells whether the user allows what a snapshot asks for.
func (o RestoreOptions) allows(asked Access) bool {
	return o.AllowHostAccess || slices.ContainsFunc(o.Allow, func(a Access) bool { return a.covers(asked) })
}

// accessProblems are the things asked for that the user does not allow, each once.
func (o RestoreOptions) accessProblems(asked []Access) []plan.Problem {
	var problems []plan.Problem
	known := map[Access]bool{}
	for _, a := range asked {
		if known[a] || o.allows(a) {
			continue
		}
		known[a] = true
		problems = append(problems, plan.Problem{
			Kind: plan.ProblemHostAccess, Subject: a.String(),
			Text: fmt.Sprintf("the snapshot is not known to be from this engine, and asks for %s (%s)", a, a.Kind.means()),
		})
	}
	return problems
}
