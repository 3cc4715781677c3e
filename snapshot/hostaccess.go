package snapshot

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
)

// hostAccessProblems are what a snapshot from another engine asks for and must
// not get unasked. volumes are those that would be made for it.
func (s surroundings) hostAccessProblems(sp *spec, volumes []volume.CreateOptions) []Problem {
	asks := sp.hostAccess()
	if sp.host.CgroupnsMode.IsHost() && slices.Contains(s.info.SecurityOptions, "name=cgroupns") {
		asks = append(asks, "--cgroupns host") // else every container of this engine has it
	}
	for _, v := range volumes {
		if device := v.DriverOpts["device"]; strings.HasPrefix(device, "/") {
			asks = append(asks, "volume "+v.Name+" on "+device)
		}
	}
	var problems []Problem
	for _, ask := range asks {
		problems = append(problems, hostAccessProblem(ask))
	}
	return problems
}

func hostAccessProblem(ask string) Problem {
	return Problem{
		Kind: ProblemHostAccess, Subject: ask,
		Text: "the snapshot was made on another engine and asks for power over this host: " + ask,
	}
}

// borrowedVolumes are volumes of this engine that a snapshot from another one asks
// for by name, besides those that are made for it.
func (s surroundings) borrowedVolumes(sp *spec, made []newVolume) []Problem {
	var problems []Problem
	for _, name := range sp.namedVolumes(made) {
		if !s.noVolume[name] {
			problems = append(problems, hostAccessProblem("volume "+name+", which is here already"))
		}
	}
	return problems
}

// hostAccess lists what of a configuration gives a container power over the
// engine's host. On the engine where the snapshot was made its owner had that
// power already; a snapshot from elsewhere must not take it unasked.
func (sp *spec) hostAccess() []string {
	h := sp.host
	var asks []string
	ask := func(condition bool, format string, args ...any) {
		if condition {
			asks = append(asks, fmt.Sprintf(format, args...))
		}
	}
	ask(h.Privileged, "--privileged")
	ask(h.NetworkMode.IsHost(), "--network host")
	ask(h.PidMode.IsHost(), "--pid host")
	ask(h.IpcMode.IsHost(), "--ipc host")
	ask(h.UTSMode.IsHost(), "--uts host")
	ask(h.UsernsMode.IsHost(), "--userns host")
	for _, capability := range h.CapAdd {
		ask(!isDefaultCapability(capability), "--cap-add %s", capability)
	}
	for _, device := range h.Devices {
		ask(true, "--device %s", device.PathOnHost)
	}
	for _, rule := range h.DeviceCgroupRules {
		ask(true, "--device-cgroup-rule %q", rule)
	}
	ask(len(h.DeviceRequests) > 0, "--gpus or another device request")
	for _, option := range h.SecurityOpt {
		ask(strings.HasSuffix(option, "unconfined") || option == "label=disable" || option == "label:disable", "--security-opt %s", option)
		ask(allowsSyscalls(option), "--security-opt seccomp with a profile that allows whatever it does not name")
	}
	unmasked := lacks(h.MaskedPaths, "/proc/kcore") || lacks(h.ReadonlyPaths, "/proc/sys")
	ask(!h.Privileged && unmasked, "--security-opt systempaths=unconfined")
	for _, b := range sp.binds() {
		ask(isPowerfulPath(b.source), "bind mount of %s", b.source)
	}
	for _, device := range sp.volumeDevices() {
		ask(true, "volume on %s", device)
	}
	return asks
}

// lacks tells whether a list of paths that the engine hides is given, and does not
// have one that every engine hides.
func lacks(paths []string, always string) bool {
	return paths != nil && !slices.Contains(paths, always)
}

// allowsSyscalls tells whether a security option is a seccomp profile that allows
// what it does not name.
func allowsSyscalls(option string) bool {
	text, ok := strings.CutPrefix(option, "seccomp=")
	if !ok {
		text, ok = strings.CutPrefix(option, "seccomp:")
	}
	var profile struct{ DefaultAction string }
	if !ok || json.Unmarshal([]byte(text), &profile) != nil {
		return false
	}
	return profile.DefaultAction == "SCMP_ACT_ALLOW" || profile.DefaultAction == "SCMP_ACT_LOG"
}

// defaultCapabilities are those that every container has unless it drops them.
var defaultCapabilities = []string{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
	"NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

func isDefaultCapability(name string) bool {
	return slices.Contains(defaultCapabilities, strings.TrimPrefix(strings.ToUpper(name), "CAP_"))
}

// volumeDevices are what of the host the configuration mounts as volumes that it
// declares itself: directories, and disks.
func (sp *spec) volumeDevices() []string {
	var devices []string
	for _, m := range sp.host.Mounts {
		if m.Type != mount.TypeVolume || m.VolumeOptions == nil || m.VolumeOptions.DriverConfig == nil {
			continue
		}
		if device := m.VolumeOptions.DriverConfig.Options["device"]; strings.HasPrefix(device, "/") {
			devices = append(devices, device)
		}
	}
	return devices
}

// engineSockets are where engines listen. Who can reach one owns the host.
var engineSockets = []string{
	"/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
	"/run/crio/crio.sock", "/run/docker/containerd/containerd.sock", "/run/user/0/docker.sock",
}

// systemTrees are directories of the host's own, and everything in them.
var systemTrees = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run/user", "/sbin", "/sys", "/usr", "/var/lib/containerd", "/var/lib/docker",
}

// systemParents are directories that are harmless in parts only.
var systemParents = []string{"/", "/home", "/var", "/var/lib"}

// harmless are the parts of system trees that many containers are given.
var harmless = []string{
	"/dev/null", "/dev/shm", "/etc/hostname", "/etc/hosts", "/etc/localtime", "/etc/machine-id", "/etc/pki", "/etc/resolv.conf", "/etc/ssl/certs",
	"/etc/timezone", "/usr/share",
}

// isPowerfulPath tells whether a bind of it holds a part of the system or an
// engine socket.
func isPowerfulPath(source string) bool {
	clean := path.Clean(source)
	if rest, ok := strings.CutPrefix(clean, "/var/run"); ok && (rest == "" || rest[0] == '/') {
		clean = "/run" + rest
	}
	isIn := func(tree string) bool { return clean == tree || strings.HasPrefix(clean, tree+"/") }
	switch {
	case slices.Contains(systemParents, clean), strings.HasSuffix(clean, ".sock"), slices.Contains(strings.Split(clean, "/"), ".docker"):
		return true
	case slices.ContainsFunc(systemTrees, isIn):
		return !slices.ContainsFunc(harmless, isIn)
	}
	return slices.ContainsFunc(engineSockets, func(socket string) bool { return strings.HasPrefix(socket, clean+"/") })
}
