package dockerop

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
)

// WithScratch runs f with a container of an image that never starts, and removes it afterwards.
// Volumes that the image declares are covered, or the engine would make and fill them. It lets nobody cover one that is
// declared with a relative path (VOLUME data).
func (e *Engine) WithScratch(ctx context.Context, name, imageID string, labels map[string]string, volumes map[string]struct{}, f func(scratch string) error) (err error) {
	host := &container.HostConfig{NetworkMode: network.NetworkNone}
	for destination := range volumes {
		if !path.IsAbs(destination) {
			continue
		}
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeTmpfs, Target: destination})
	}
	scratch, err := e.CreateContainer(ctx, &container.Config{
		Image:      imageID,
		Entrypoint: []string{"/never-started"}, // the engine wants a command
		Labels:     labels,
	}, host, nil, name)
	if err != nil {
		return fmt.Errorf("create scratch container: %w", err)
	}
	defer func() {
		after, cancel := Cleanup(ctx)
		defer cancel()
		err = errors.Join(err, e.RemoveContainer(after, scratch.ID))
	}()
	return f(scratch.ID)
}
