package runconfig

import (
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
)

// configRules judge what runs in the container.
var configRules = rules[container.Config]{
	harmless: []string{
		"ArgsEscaped", "AttachStderr", "AttachStdin", "AttachStdout", "Cmd", "Domainname", "Entrypoint", "Env",
		"ExposedPorts", "Healthcheck", "Hostname", "Image", "Labels", "MacAddress", "NetworkDisabled", "OnBuild",
		"OpenStdin", "Shell", "StdinOnce", "StopSignal", "StopTimeout", "Tty", "User", "Volumes", "WorkingDir",
	},
}

// hostRules judge what the container is given of its host.
var hostRules = rules[container.HostConfig]{
	harmless: []string{
		"AutoRemove", "BlkioDeviceReadBps", "BlkioDeviceReadIOps", "BlkioDeviceWriteBps", "BlkioDeviceWriteIOps",
		"BlkioWeight", "BlkioWeightDevice", "CPUCount", "CPUPercent", "CPUPeriod", "CPUQuota", "CPUShares", "CapDrop",
		"ConsoleSize", "ContainerIDFile", "CpusetCpus", "CpusetMems", "DNS", "DNSOptions", "DNSSearch", "ExtraHosts",
		"GroupAdd", "IOMaximumBandwidth", "IOMaximumIOps", "Init", "KernelMemory", "KernelMemoryTCP", "Memory",
		"MemoryReservation", "MemorySwap", "MemorySwappiness", "NanoCPUs", "PidsLimit", "PortBindings", "PublishAllPorts",
		"ReadonlyRootfs", "RestartPolicy", "ShmSize", "Tmpfs",
	},
	judged: map[string]rule[container.HostConfig]{
		"Annotations":        each(accessAnnotation, func(h container.HostConfig) []string { return keys(h.Annotations) }),
		"Binds":              func(j judge, h container.HostConfig) []Access { return j.binds(h.Binds) },
		"CPURealtimePeriod":  each(accessRealtime, func(h container.HostConfig) []string { return []string{strconv.FormatInt(h.CPURealtimePeriod, 10)} }),
		"CPURealtimeRuntime": each(accessRealtime, func(h container.HostConfig) []string { return []string{strconv.FormatInt(h.CPURealtimeRuntime, 10)} }),
		"CapAdd":             each(accessCapability, func(h container.HostConfig) []string { return unusualCapabilities(h.CapAdd) }),
		"Cgroup":             each(accessCgroup, func(h container.HostConfig) []string { return []string{string(h.Cgroup)} }),
		"CgroupParent":       each(accessCgroupParent, func(h container.HostConfig) []string { return []string{h.CgroupParent} }),
		"CgroupnsMode":       func(j judge, h container.HostConfig) []Access { return j.cgroupns(h.CgroupnsMode) },
		"DeviceCgroupRules":  each(accessDeviceRule, func(h container.HostConfig) []string { return h.DeviceCgroupRules }),
		"DeviceRequests":     each(accessDeviceRequest, deviceRequests),
		"Devices":            each(accessDevice, devicePaths),
		"IpcMode":            unless(accessIPC, func(h container.HostConfig) string { return string(h.IpcMode) }, "none", "private", "shareable"),
		"Isolation":          unless(accessIsolation, func(h container.HostConfig) string { return string(h.Isolation) }, "default"),
		"Links":              each(accessLink, func(h container.HostConfig) []string { return linkTargets(h.Links) }),
		"LogConfig":          func(j judge, h container.HostConfig) []Access { return j.logging(h.LogConfig) },
		"MaskedPaths":        hidden(func(h container.HostConfig) bool { return h.Privileged || hidesAll(h.MaskedPaths, alwaysMasked) }),
		"Mounts":             func(j judge, h container.HostConfig) []Access { return j.mounts(h.Mounts) },
		"NetworkMode":        func(j judge, h container.HostConfig) []Access { return j.network(string(h.NetworkMode)) },
		"OomKillDisable": func(_ judge, h container.HostConfig) []Access {
			return when(*h.OomKillDisable, Access{Kind: accessOOMKillDisable})
		},
		"OomScoreAdj": func(_ judge, h container.HostConfig) []Access {
			return when(h.OomScoreAdj < 0, Access{accessOOMScore, strconv.Itoa(h.OomScoreAdj)})
		},
		"PidMode":       unless(accessPID, func(h container.HostConfig) string { return string(h.PidMode) }),
		"Privileged":    func(judge, container.HostConfig) []Access { return []Access{{Kind: accessPrivileged}} },
		"ReadonlyPaths": hidden(func(h container.HostConfig) bool { return h.Privileged || hidesAll(h.ReadonlyPaths, alwaysReadonly) }),
		"Runtime":       func(j judge, h container.HostConfig) []Access { return j.runtime(h.Runtime) },
		"SecurityOpt":   each(accessSecurity, unusualSecurity),
		"StorageOpt":    each(accessStorageOption, func(h container.HostConfig) []string { return except(keys(h.StorageOpt), "size") }),
		"Sysctls":       each(accessSysctl, func(h container.HostConfig) []string { return foreignSysctls(h.Sysctls) }),
		"UTSMode":       unless(accessUTS, func(h container.HostConfig) string { return string(h.UTSMode) }),
		"Ulimits":       each(accessUlimit, unusualUlimits),
		"UsernsMode":    unless(accessUserNamespace, func(h container.HostConfig) string { return string(h.UsernsMode) }),
		"VolumeDriver":  func(j judge, h container.HostConfig) []Access { return j.volumeDriver(h.VolumeDriver, nil) },
		"VolumesFrom":   each(accessVolumesFrom, func(h container.HostConfig) []string { return (&Spec{Host: h}).volumeSources() }),
	},
}

// endpointRules judge how the container is connected to a network. The network itself is judged by
// its name. Fields that an engine only reports are harmless.
var endpointRules = rules[network.EndpointSettings]{
	harmless: []string{
		"Aliases", "DNSNames", "EndpointID", "Gateway", "GlobalIPv6Address", "GlobalIPv6PrefixLen", "GwPriority",
		"IPAMConfig", "IPAddress", "IPPrefixLen", "IPv6Gateway", "MacAddress", "NetworkID",
	},
	judged: map[string]rule[network.EndpointSettings]{
		"DriverOpts": each(accessNetworkOption, func(e network.EndpointSettings) []string { return keys(e.DriverOpts) }),
		"Links":      each(accessLink, func(e network.EndpointSettings) []string { return linkTargets(e.Links) }),
	},
}

// mountRules judge one mount.
var mountRules = rules[mount.Mount]{
	harmless: []string{
		"ClusterOptions", "Consistency", "ReadOnly", "Target",
	},
	judged: map[string]rule[mount.Mount]{
		"BindOptions": func(j judge, m mount.Mount) []Access { return bindOptionRules.asked(j, "BindOptions", *m.BindOptions) },
		"ImageOptions": func(j judge, m mount.Mount) []Access {
			return imageOptionRules.asked(j, "ImageOptions", *m.ImageOptions)
		},
		"Source": func(j judge, m mount.Mount) []Access { return j.mountSource(m) },
		"TmpfsOptions": func(j judge, m mount.Mount) []Access {
			return tmpfsOptionRules.asked(j, "TmpfsOptions", *m.TmpfsOptions)
		},
		"Type": func(_ judge, m mount.Mount) []Access { return mountType(m.Type) },
		"VolumeOptions": func(j judge, m mount.Mount) []Access {
			return volumeOptionRules.asked(j, "VolumeOptions", *m.VolumeOptions)
		},
	},
}

var bindOptionRules = rules[mount.BindOptions]{
	harmless: []string{
		"CreateMountpoint", "NonRecursive", "ReadOnlyForceRecursive", "ReadOnlyNonRecursive",
	},
	judged: map[string]rule[mount.BindOptions]{
		"Propagation": unless(accessPropagation, func(o mount.BindOptions) string { return string(o.Propagation) }, "private", "rprivate"),
	},
}

var volumeOptionRules = rules[mount.VolumeOptions]{
	harmless: []string{
		"Labels", "NoCopy", "Subpath",
	},
	judged: map[string]rule[mount.VolumeOptions]{
		"DriverConfig": func(j judge, o mount.VolumeOptions) []Access {
			return driverRules.asked(j, "DriverConfig", *o.DriverConfig)
		},
	},
}

var driverRules = rules[mount.Driver]{
	judged: map[string]rule[mount.Driver]{
		"Name":    func(j judge, d mount.Driver) []Access { return j.volumeDriver(d.Name, nil) },
		"Options": func(j judge, d mount.Driver) []Access { return j.volumeDriver("", d.Options) },
	},
}

var imageOptionRules = rules[mount.ImageOptions]{
	harmless: []string{
		"Subpath",
	},
}

var tmpfsOptionRules = rules[mount.TmpfsOptions]{
	harmless: []string{
		"Mode", "Options", "SizeBytes",
	},
}

// each returns the rule for a field every value of which asks for access.
func each[T any](kind AccessKind, values func(T) []string) rule[T] {
	return func(_ judge, v T) []Access {
		var all []Access
		for _, value := range values(v) {
			all = append(all, Access{kind, value})
		}
		return all
	}
}

// unless returns the rule for a field of which the known values are harmless.
func unless[T any](kind AccessKind, value func(T) string, known ...string) rule[T] {
	return each(kind, func(v T) []string { return except([]string{value(v)}, known...) })
}

// hidden returns the rule for a list of paths that the engine hides from containers. whole tells
// whether the list is complete.
func hidden(whole func(container.HostConfig) bool) rule[container.HostConfig] {
	return func(_ judge, h container.HostConfig) []Access {
		return when(!whole(h), Access{accessSecurity, "systempaths=unconfined"})
	}
}

func when(condition bool, a Access) []Access {
	if condition {
		return []Access{a}
	}
	return nil
}

// except returns the values that are not known.
func except(values []string, known ...string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return slices.Contains(known, value) })
}

// keys returns the keys of a map, sorted.
func keys(m map[string]string) []string {
	all := make([]string, 0, len(m))
	for key := range m {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

// linkTargets returns the containers that links lead to.
func linkTargets(links []string) []string {
	targets := make([]string, len(links))
	for i, link := range createLinks(links) {
		targets[i], _, _ = strings.Cut(link, ":")
	}
	return targets
}
