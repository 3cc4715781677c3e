package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

// projectVariable names Compose's project, wherever its directory is.
const projectVariable = "COMPOSE_PROJECT_NAME"

// ofThisProject are those of the services that belong to the project that Compose would
// take here: that of the variable, else that of the directory.
func (d deps) ofThisProject(services []snapshot.Service) []snapshot.Service {
	project, named := d.settings.environment(projectVariable)
	return slices.DeleteFunc(slices.Clone(services), func(s snapshot.Service) bool {
		if named && project != "" {
			return s.Project != project
		}
		return s.Directory == "" || s.Directory != d.directory
	})
}

// withService does something with a container. If there is none of that name, but a
// service of this project with one container, it does it with that. Services of other
// projects are named in the error.
func (d deps) withService(ctx context.Context, eng engine, name string, do func(container string) error) error {
	err := do(name)
	if !cerrdefs.IsNotFound(err) {
		return err
	}
	services, listErr := eng.Services(ctx, name)
	if listErr != nil || len(services) == 0 {
		return err
	}
	if here := d.ofThisProject(services); len(here) == 1 {
		return do(here[0].Container)
	}
	for _, s := range services {
		err = errors.Join(err, fmt.Errorf("%s is a service of project %s: %s", name, s.Project, s.Container))
	}
	return err
}
