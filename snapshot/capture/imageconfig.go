package capture

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// commitConfig is the image configuration of a snapshot: the defaults of the
// image below, not the overrides of this one run, which are in the labels. What
// it leaves empty the engine fills from the container.
func commitConfig(s Source, own map[string]string) *container.Config {
	config := &container.Config{}
	if s.image != nil && s.image.Config != nil {
		config = imageDefaults(*s.image.Config)
		separateOverrides(config, s.Container.Config)
	}
	config.Labels = imageLabels(s)
	maps.Copy(config.Labels, own)
	return config
}

// imageLabels are the labels of the container, with the values that its image has. A label that only the container has is empty, and so are
// ours and Compose's: other programs would act on the snapshot, and on every container made from it. None
// can be left out, because commit would take it from the container.
func imageLabels(s Source) map[string]string {
	all := map[string]string{}
	for key := range s.Container.Config.Labels {
		all[key] = ""
		isBlank := strings.HasPrefix(key, labels.Prefix) || strings.HasPrefix(key, catalog.ComposePrefix)
		if s.image != nil && s.image.Config != nil && !isBlank {
			all[key] = s.image.Config.Labels[key]
		}
	}
	return all
}

// imageDefaults turns an image's configuration into one that commit takes.
func imageDefaults(from dockerspec.DockerOCIImageConfig) *container.Config {
	config := &container.Config{
		User: from.User, Env: from.Env, Cmd: from.Cmd, Entrypoint: from.Entrypoint, WorkingDir: from.WorkingDir,
		Volumes: from.Volumes, StopSignal: from.StopSignal, Healthcheck: from.Healthcheck, OnBuild: from.OnBuild, Shell: from.Shell,
		ArgsEscaped: from.ArgsEscaped, //nolint:staticcheck // SA1019: deprecated, but Windows images still carry it.
	}
	if len(from.ExposedPorts) > 0 {
		config.ExposedPorts = nat.PortSet{}
		for port := range from.ExposedPorts {
			config.ExposedPorts[nat.Port(port)] = struct{}{}
		}
	}
	return config
}

// separateOverrides gives what the image leaves empty and the run has set a
// value that means empty: commit takes an empty field from the container. There
// is none for ports and volumes, of which commit takes both.
func separateOverrides(defaults, run *container.Config) {
	if defaults.Entrypoint == nil {
		defaults.Entrypoint = []string{}
	}
	if defaults.User == "" && run.User != "" {
		defaults.User = "0"
	}
	if defaults.WorkingDir == "" && run.WorkingDir != "" {
		defaults.WorkingDir = "/"
	}
	if defaults.StopSignal == "" && run.StopSignal != "" {
		defaults.StopSignal = "SIGTERM"
	}
	defaults.Healthcheck = separateHealth(defaults.Healthcheck, run.Healthcheck)
	defaults.Env = withoutAdded(defaults.Env, run.Env)
}

// separateHealth does the same for the healthcheck, of which commit takes each
// field that is empty.
func separateHealth(image, run *dockerspec.HealthcheckConfig) *dockerspec.HealthcheckConfig {
	if run == nil {
		return image
	}
	separate := dockerspec.HealthcheckConfig{}
	if image != nil {
		separate = *image
	}
	if len(separate.Test) == 0 && len(run.Test) > 0 {
		separate.Test = []string{"NONE"}
	}
	for _, field := range []struct {
		image  *time.Duration
		run    time.Duration
		normal time.Duration // the engine's default
	}{
		{&separate.Interval, run.Interval, 30 * time.Second},
		{&separate.Timeout, run.Timeout, 30 * time.Second},
		{&separate.StartPeriod, run.StartPeriod, time.Millisecond}, // none, but that cannot be said; the engine takes nothing shorter
		{&separate.StartInterval, run.StartInterval, 5 * time.Second},
	} {
		if *field.image == 0 && field.run != 0 {
			*field.image = field.normal
		}
	}
	if separate.Retries == 0 && run.Retries != 0 {
		separate.Retries = 3
	}
	return &separate
}

// withoutAdded hides the variables that only the run has: a key without a value
// keeps commit from adding the container's, and means that there is none.
func withoutAdded(defaults, run []string) []string {
	env := slices.Clone(defaults)
	for _, entry := range run {
		key, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(defaults, func(d string) bool { return d == key || strings.HasPrefix(d, key+"=") }) {
			env = append(env, key)
		}
	}
	return env
}
