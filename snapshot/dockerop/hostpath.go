package dockerop

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// noImage is a reference that no image can have: no content has a digest of zeros.
const noImage = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// CheckHostPath returns an errdefs not-found error if a path does not exist on the engine's host.
//
// The API has no call for that. But the engine checks the bind mounts of a create call before it
// looks for the image. So CheckHostPath asks for a container of an image that cannot exist: nothing
// is made, and the error tells whether the path or only the image is missing.
func (e *Engine) CheckHostPath(ctx context.Context, path string) error {
	_, err := e.ContainerCreate(ctx, &container.Config{Image: noImage}, &container.HostConfig{
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: path, Target: "/probe", ReadOnly: true}},
	}, nil, nil, "")
	switch {
	case err == nil:
		return fmt.Errorf("the engine has an image %s", noImage)
	case strings.Contains(err.Error(), "bind source path does not exist"):
		return cerrdefs.ErrNotFound
	case cerrdefs.IsNotFound(err):
		return nil // the path passed, the image did not
	}
	return err
}
