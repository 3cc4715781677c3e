package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/go-connections/nat"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// composePrefix begins the labels by which Compose knows what is its own.
const composePrefix = "com.docker.compose."

// commit makes an image of the container's filesystem, untagged, and returns
// its ID.
//
// An engine does not stop a commit because its client has gone. So a call that
// is cancelled is waited for, for as long as cleaning up may take, and what it
// made is removed.
func (e *Engine) commit(ctx context.Context, id string, options container.CommitOptions) (string, error) {
	type result struct {
		image string
		err   error
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	done := make(chan result, 1)
	go func() {
		response, err := e.docker.ContainerCommit(context.WithoutCancel(ctx), id, options)
		done <- result{response.ID, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && options.Reference == "" { // by its tag it would be found
			return "", errors.Join(r.err, e.removeUnansweredCommit(ctx, r.err, options))
		}
		return r.image, r.err
	case <-ctx.Done():
	}
	limit := time.NewTimer(cleanupTimeout)
	defer limit.Stop()
	select {
	case r := <-done:
		if r.err != nil {
			return "", context.Cause(ctx)
		}
		after, cancel := cleanup(ctx)
		defer cancel()
		if err := e.removeImage(after, r.image); err != nil {
			return "", fmt.Errorf("remove unfinished image: %w", err)
		}
	case <-limit.C:
	}
	return "", context.Cause(ctx)
}

// removeUnansweredCommit removes the image that a commit has made although it
// failed: the connection may break before the answer comes. Its label has the ID of
// this snapshot, and it has no tag.
func (e *Engine) removeUnansweredCommit(ctx context.Context, failure error, options container.CommitOptions) error {
	id := options.Config.Labels[labels.KeyID]
	if cerrdefs.IsConflict(failure) || cerrdefs.IsNotFound(failure) || cerrdefs.IsInvalidArgument(failure) || id == "" {
		return nil // an answer
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	return insist(ctx, func(ctx context.Context) error {
		made, err := e.docker.ImageList(ctx, image.ListOptions{
			Filters: filters.NewArgs(filters.Arg("dangling", "true"), filters.Arg("label", labels.KeyID+"="+id)),
		})
		for _, summary := range made {
			err = errors.Join(err, e.removeImage(ctx, summary.ID))
		}
		return describe(err, "look for an image that the engine may have made")
	}, nil)
}

// commitConfig is the image configuration of a snapshot: the defaults of the
// image below, not the overrides of this one run, which are in the labels. What
// it leaves empty the engine fills from the container.
func commitConfig(s source, own map[string]string) *container.Config {
	config := &container.Config{}
	if s.image != nil && s.image.Config != nil {
		config = imageDefaults(*s.image.Config)
		separateOverrides(config, s.container.Config)
	}
	config.Labels = map[string]string{}
	for key := range s.container.Config.Labels {
		if strings.HasPrefix(key, labels.Prefix) || strings.HasPrefix(key, composePrefix) {
			config.Labels[key] = "" // or docker compose down would hit copies
		}
	}
	maps.Copy(config.Labels, own)
	return config
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

// removeImage removes an image by its ID, or one of its tags. One that is gone
// already is as good.
func (e *Engine) removeImage(ctx context.Context, id string) error {
	_, err := e.docker.ImageRemove(ctx, id, image.RemoveOptions{Force: true, PruneChildren: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}
