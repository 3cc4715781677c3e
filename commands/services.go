package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
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
// service of this project with one container, it does it with that.
func withService[T any](ctx context.Context, d deps, eng engine, container string, do func(container string) (T, error)) (T, error) {
	return retryAsService(ctx, d, eng, container, do, cerrdefs.IsNotFound)
}

// withSnapshot does the same with the word that means a snapshot: a container, alone or
// with what is behind ':' or '@'.
func withSnapshot[T any](ctx context.Context, d deps, eng engine, word string, do func(word string) (T, error)) (T, error) {
	return retryAsService(ctx, d, eng, word, do, isNoSnapshot)
}

// isNoSnapshot tells whether an error says that a word means no snapshot.
func isNoSnapshot(err error) bool {
	_, none := errors.AsType[*snapshot.NotFoundError](err)
	return none
}

func retryAsService[T any](ctx context.Context, d deps, eng engine, word string, do func(word string) (T, error), unknown func(error) bool) (T, error) {
	done, err := do(word)
	if !unknown(err) {
		return done, err
	}
	meant, other := d.containerOfService(ctx, eng, word)
	if meant != "" {
		return do(meant)
	}
	return done, errors.Join(err, other)
}

// containerOfService is a word with the container of a service of this project in place
// of the service. It is empty if the word begins with the name of a container, or of no
// service, or of one with other containers than one here; these are named in the error.
func (d deps) containerOfService(ctx context.Context, eng engine, word string) (meant string, other error) {
	name, rest := word, ""
	if at := strings.IndexAny(word, ":@"); at >= 0 {
		name, rest = word[:at], word[at:]
	}
	if _, err := labels.ParseID(name); err == nil || name == "" {
		return "", nil
	}
	services, err := eng.Services(ctx, name)
	if err != nil || len(services) == 0 {
		return "", nil //nolint:nilerr // what has failed before is the error to report
	}
	containers, err := eng.Containers(ctx)
	if err != nil || slices.ContainsFunc(containers, func(c snapshot.Candidate) bool { return c.Word == name }) {
		return "", nil //nolint:nilerr // as above
	}
	here := d.ofThisProject(services)
	if len(here) == 1 {
		return here[0].Container + rest, nil
	}
	if len(here) > 1 {
		services = here
	}
	for _, s := range services {
		other = errors.Join(other, fmt.Errorf("%s is a service of project %s: %s", name, s.Project, s.Container))
	}
	return "", other
}
