package runconfig

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// binds judges HostConfig.Binds.
func (j judge) binds(all []string) []Access {
	var asked []Access
	for _, text := range all {
		b, ok := parseBind(text)
		switch {
		case !ok && isClean(text): // an anonymous volume
		case !ok || !labels.IsContainerName(b.Source) || !strings.HasPrefix(b.Destination, "/"):
			asked = append(asked, pathAccess(b, text)...)
		default:
			asked = append(asked, j.volume(b.Source)...)
		}
	}
	return asked
}

// pathAccess judges a bind mount of a path, and every entry that is not understood.
func pathAccess(b bindSpec, text string) []Access {
	if !strings.HasPrefix(b.Source, "/") {
		return []Access{{AccessBind, text}}
	}
	var asked []Access
	for _, option := range except(b.options, "ro", "rw", "z", "Z", "nocopy", "private", "rprivate", "consistent", "cached", "delegated", "default", "") {
		asked = append(asked, Access{accessPropagation, option})
	}
	if b.Has("ro") && len(b.options) == 1 && isHarmlessPath(b.Source) {
		return asked
	}
	return append(asked, Access{AccessBind, b.Source})
}

// mounts judges HostConfig.Mounts.
func (j judge) mounts(all []mount.Mount) []Access {
	var asked []Access
	for _, m := range all {
		asked = append(asked, mountRules.asked(j, "Mount", m)...)
	}
	return asked
}

// mountType refuses types of mounts whose sources nobody has thought about yet.
func mountType(t mount.Type) []Access {
	switch t {
	case mount.TypeBind, mount.TypeVolume, mount.TypeTmpfs, mount.TypeImage:
		return nil
	}
	return []Access{{accessField, "Mount.Type." + string(t)}}
}

// mountSource judges what a mount shows.
func (j judge) mountSource(m mount.Mount) []Access {
	switch m.Type {
	case mount.TypeVolume:
		return j.volume(m.Source)
	case mount.TypeImage:
		return []Access{{accessImage, m.Source}}
	}
	isWhole := m.BindOptions == nil || !m.BindOptions.ReadOnlyNonRecursive
	if m.ReadOnly && isWhole && isHarmlessPath(m.Source) {
		return nil
	}
	return []Access{{AccessBind, m.Source}}
}

// harmlessPaths are the same on every host, or no secret, and many containers are allowed to read
// them.
var harmlessPaths = []string{"/etc/localtime", "/etc/ssl/certs", "/etc/timezone", "/usr/share/ca-certificates", "/usr/share/zoneinfo"}

func isHarmlessPath(source string) bool {
	return isClean(source) && slices.ContainsFunc(harmlessPaths, func(known string) bool { return isBelow(source, known) })
}

// volumeDriver judges the driver and options of a volume. The options of the local driver are those
// of a mount, and lead to any disk, directory or server.
func (j judge) volumeDriver(driver string, options map[string]string) []Access {
	var asked []Access
	if driver != "" && driver != "local" {
		asked = append(asked, Access{accessVolumeDriver, driver})
	}
	if isMemory(options) {
		return asked
	}
	for _, key := range except(keys(options), "size") {
		asked = append(asked, Access{accessVolumeOption, key + "=" + options[key]})
	}
	return asked
}

// isMemory tells whether a volume with these options of the local driver is only memory.
func isMemory(options map[string]string) bool {
	if options["type"] != "tmpfs" || len(except(keys(options), "type", "device", "o")) > 0 {
		return false
	}
	for option := range strings.SplitSeq(options["o"], ",") {
		key, _, _ := strings.Cut(option, "=")
		if !slices.Contains([]string{"", "size", "mode", "uid", "gid", "nr_inodes", "nodev", "nosuid", "noexec", "rw", "ro"}, key) {
			return false
		}
	}
	return slices.Contains([]string{"", "none", "tmpfs"}, options["device"])
}

// network judges a network mode, or the name of a network. It allows those that the user named.
func (j judge) network(name string) []Access {
	if slices.Contains([]string{"", "default", "bridge", "none"}, name) || slices.Contains(j.joins, name) {
		return nil
	}
	return []Access{{accessNetwork, name}}
}

// cgroupns judges the cgroup namespace. An engine with cgroup v1 gives every container the host's,
// and reports that as if somebody had asked for it.
func (j judge) cgroupns(mode container.CgroupnsMode) []Access {
	if mode == "private" || mode.IsHost() && !slices.Contains(j.info.SecurityOptions, "name=cgroupns") {
		return nil
	}
	return []Access{{accessCgroupns, string(mode)}}
}

// runtime allows the runtime that every container on this engine has.
func (j judge) runtime(name string) []Access {
	if slices.Contains([]string{"runc", "io.containerd.runc.v2", j.info.DefaultRuntime}, name) {
		return nil
	}
	return []Access{{accessRuntime, name}}
}

// logging judges the log driver. Other drivers than the known ones write to other machines, or into
// the host's own log.
func (j judge) logging(c container.LogConfig) []Access {
	isDefault := c.Type == j.info.LoggingDriver && len(c.Config) == 0
	if isDefault || slices.Contains([]string{"", "json-file", "local", "none"}, c.Type) {
		return nil
	}
	return []Access{{accessLogDriver, c.Type}}
}

// defaultCapabilities are what every container has unless it drops them.
var defaultCapabilities = []string{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
	"NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

func unusualCapabilities(added []string) []string {
	plain := make([]string, len(added))
	for i, name := range added {
		plain[i] = strings.TrimPrefix(strings.ToUpper(name), "CAP_")
	}
	return except(plain, defaultCapabilities...)
}

// unusualSecurity returns the security options that may remove a protection. A seccomp profile is a
// long text, so it is only called "seccomp".
func unusualSecurity(h container.HostConfig) []string {
	var unusual []string
	for _, option := range h.SecurityOpt {
		name, value, found := strings.Cut(option, "=")
		if before, after, ok := strings.Cut(option, ":"); ok && (!found || len(before) < len(name)) {
			name, value, found = before, after, true
		}
		switch {
		case name == "no-new-privileges" && (!found || value == "true"):
		case name == "apparmor" && value == "docker-default":
		case name == "label" && value == "disable" && (h.Privileged || h.PidMode.IsHost() || h.IpcMode.IsHost()): // the engine adds it
		case name == "seccomp" && value != "unconfined":
			unusual = append(unusual, "seccomp")
		case !found:
			unusual = append(unusual, name)
		default:
			unusual = append(unusual, name+"="+value)
		}
	}
	return unusual
}

// Every engine hides the first paths from containers, and makes the second read-only.
var (
	alwaysMasked = []string{
		"/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
		"/proc/sched_debug", "/proc/scsi", "/sys/firmware",
	}
	alwaysReadonly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// hidesAll tells whether a list of hidden paths is nil, which leaves it to the engine, or contains
// everything that engines always hide.
func hidesAll(paths, always []string) bool {
	return paths == nil || len(except(always, paths...)) == 0
}

// foreignSysctls returns the kernel parameters that are not known to belong to the container's own
// namespaces.
func foreignSysctls(all map[string]string) []string {
	return slices.DeleteFunc(keys(all), func(name string) bool {
		for _, own := range []string{"net.", "kernel.msg", "kernel.sem", "kernel.shm", "fs.mqueue."} {
			if strings.HasPrefix(name, own) {
				return true
			}
		}
		return false
	})
}

// unusualUlimits returns the limits that give precedence over other processes. The known ones only
// limit the container itself.
func unusualUlimits(h container.HostConfig) []string {
	var names []string
	for _, u := range h.Ulimits {
		if u != nil {
			names = append(names, u.Name)
		}
	}
	return except(names, "as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nofile", "nproc", "rss", "sigpending", "stack")
}

// devicePaths returns the devices of the host that a container gets.
func devicePaths(h container.HostConfig) []string {
	paths := make([]string, len(h.Devices))
	for i, d := range h.Devices {
		paths[i] = d.PathOnHost
	}
	return paths
}

// deviceRequests returns the drivers that are asked for devices.
func deviceRequests(h container.HostConfig) []string {
	drivers := make([]string, len(h.DeviceRequests))
	for i, request := range h.DeviceRequests {
		drivers[i] = request.Driver
	}
	return drivers
}
