package dockerop

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// NoImage is a reference that no image can have: the digest of nothing has
// another value.
const NoImage = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// CheckHostPath asks whether a path exists on the engine's host. There is no
// call for that, but the engine checks a create call's bind mounts before it
// looks for the image. So a call for an image that cannot exist makes nothing,
// and its error tells which of the two was missing.
func (e *Engine) CheckHostPath(ctx context.Context, path string) error {
	_, err := e.ContainerCreate(ctx, &container.Config{Image: NoImage}, &container.HostConfig{
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: path, Target: "/probe", ReadOnly: true}},
	}, nil, nil, "")
	switch {
	case err == nil:
		return fmt.Errorf("the engine has an image %s", NoImage)
	case strings.Contains(err.Error(), "bind source path does not exist"):
		return cerrdefs.ErrNotFound
	case cerrdefs.IsNotFound(err):
		return nil // the path passed, the image did not
	}
	return err
}
