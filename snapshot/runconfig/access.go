package runconfig

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Access is something that gives a container power over the engine, its host or other containers. A
// foreign snapshot gets it only if the user allows it.
type Access struct {
	Kind  AccessKind
	Value string // which one; if the user allows it, empty means all of this kind
}

// AccessKind is a kind of access. It has the name of the flag of docker run that asks for the same,
// if there is one.
type AccessKind string

// The kinds of access. [AccessKinds] explains them.
const (
	accessPrivileged     AccessKind = "privileged"
	accessCapability     AccessKind = "cap-add"
	accessSecurity       AccessKind = "security-opt"
	AccessBind           AccessKind = "bind"
	accessPropagation    AccessKind = "bind-propagation"
	accessVolume         AccessKind = "volume"
	accessVolumeDriver   AccessKind = "volume-driver"
	accessVolumeOption   AccessKind = "volume-opt"
	accessVolumesFrom    AccessKind = "volumes-from"
	accessImage          AccessKind = "image"
	accessDevice         AccessKind = "device"
	accessDeviceRule     AccessKind = "device-cgroup-rule"
	accessDeviceRequest  AccessKind = "gpus"
	accessNetwork        AccessKind = "network"
	accessNetworkOption  AccessKind = "network-opt"
	accessLink           AccessKind = "link"
	accessPID            AccessKind = "pid"
	accessIPC            AccessKind = "ipc"
	accessUTS            AccessKind = "uts"
	accessUserNamespace  AccessKind = "userns"
	accessCgroupns       AccessKind = "cgroupns"
	accessCgroup         AccessKind = "cgroup"
	accessCgroupParent   AccessKind = "cgroup-parent"
	accessRealtime       AccessKind = "cpu-rt"
	accessOOMScore       AccessKind = "oom-score-adj"
	accessOOMKillDisable AccessKind = "oom-kill-disable"
	accessUlimit         AccessKind = "ulimit"
	accessSysctl         AccessKind = "sysctl"
	accessRuntime        AccessKind = "runtime"
	accessAnnotation     AccessKind = "annotation"
	accessLogDriver      AccessKind = "log-driver"
	accessStorageOption  AccessKind = "storage-opt"
	accessIsolation      AccessKind = "isolation"
	accessField          AccessKind = "field"
)

// AccessKindInfo explains a kind of access to people.
type AccessKindInfo struct {
	Kind  AccessKind
	Means string
}

// AccessKinds explains every kind of access.
func AccessKinds() []AccessKindInfo {
	return []AccessKindInfo{
		{accessPrivileged, "all power over the host"},
		{accessCapability, "a capability that containers do not have by default"},
		{accessSecurity, "a security option"},
		{AccessBind, "a path of the host, and what is below it"},
		{accessPropagation, "mounts that propagate between host and container"},
		{accessVolume, "a volume that is here already"},
		{accessVolumeDriver, "a volume driver"},
		{accessVolumeOption, "an option of a volume's driver"},
		{accessVolumesFrom, "the volumes of another container"},
		{accessImage, "the files of another image"},
		{accessDevice, "a device of the host"},
		{accessDeviceRule, "a rule that opens devices"},
		{accessDeviceRequest, "GPUs, or what another device driver has"},
		{accessNetwork, "a network that users made, the host's, or another container's"},
		{accessNetworkOption, "an option of a network's driver"},
		{accessLink, "a link to another container"},
		{accessPID, "processes of the host or of another container"},
		{accessIPC, "shared memory of the host or of another container"},
		{accessUTS, "the host's name"},
		{accessUserNamespace, "the host's user IDs"},
		{accessCgroupns, "the host's control groups"},
		{accessCgroup, "the control group of another container"},
		{accessCgroupParent, "a control group of the host to run in"},
		{accessRealtime, "realtime scheduling"},
		{accessOOMScore, "to be spared when the host's memory runs out"},
		{accessOOMKillDisable, "never to be killed when memory runs out"},
		{accessUlimit, "a limit that gives precedence over other processes"},
		{accessSysctl, "a kernel parameter that is not the container's own"},
		{accessRuntime, "a runtime that is not the engine's default"},
		{accessAnnotation, "an annotation, which a runtime may act on"},
		{accessLogDriver, "a log driver that writes elsewhere"},
		{accessStorageOption, "an option of the storage driver"},
		{accessIsolation, "an isolation technology"},
		{accessField, "a setting of which this version does not know what it does"},
	}
}

// means explains the kind. It returns "" for an unknown kind.
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

// String returns the text that [ParseAccess] reads.
func (a Access) String() string {
	if a.Value == "" {
		return string(a.Kind)
	}
	return string(a.Kind) + "=" + a.Value
}

// covers tells whether a user who allows a allows asked as well. A path of the host covers what is
// below it.
func (a Access) covers(asked Access) bool {
	if a.Kind != asked.Kind {
		return false
	}
	if a.Value == "" || a.Value == asked.Value {
		return true
	}
	arePaths := a.Kind == AccessBind || a.Kind == accessDevice
	return arePaths && isClean(asked.Value) && isBelow(asked.Value, path.Clean(a.Value))
}

// isClean tells whether a path is absolute and leads where it seems to: behind a symbolic link, ..
// may lead anywhere.
func isClean(text string) bool { return strings.HasPrefix(text, "/") && path.Clean(text) == text }

// isBelow tells whether a path is the directory, or in it.
func isBelow(text, directory string) bool {
	return text == directory || strings.HasPrefix(text, strings.TrimSuffix(directory, "/")+"/")
}

// allows tells whether the user allows what a snapshot asks for.
func (o RestoreOptions) allows(asked Access) bool {
	return o.AllowHostAccess || slices.ContainsFunc(o.Allow, func(a Access) bool { return a.covers(asked) })
}

// accessProblems returns a problem for each access that the user does not allow, once.
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
