package copies

import (
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// An anonymous volume belongs to one container: docker rm -v and --rm remove it with
// that. Only a volume that the engine makes and names while it creates a container is one.
// So a restore creates the container first, with mounts without a source, asks which
// volumes the engine has made, fills them, and starts the container afterwards. A
// volume that exists can only be mounted by its name, and then the engine keeps it.

// named are the volumes that are made before the container.
func (r restore) named() []runconfig.NewVolume {
	return slices.DeleteFunc(slices.Clone(r.volumes), runconfig.NewVolume.IsAnonymous)
}

// anonymous are the volumes that the engine makes together with the container.
func (r restore) anonymous() []runconfig.NewVolume {
	return slices.DeleteFunc(slices.Clone(r.volumes), func(v runconfig.NewVolume) bool { return !v.IsAnonymous() })
}
