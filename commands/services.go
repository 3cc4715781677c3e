package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// projectVariable names Compose's project, wherever its directory is.
const projectVariable = "COMPOSE_PROJECT_NAME"

// ofThisProject returns the services of the project that Compose would choose here: the one
// that the variable names, else that of the directory.
func (d deps) ofThisProject(services []catalog.Service) []catalog.Service {
	project, named := d.settings.environment(projectVariable)
	return slices.DeleteFunc(slices.Clone(services), func(s catalog.Service) bool {
		if named && project != "" {
			return s.Project != project
		}
		return s.Directory == "" || s.Directory != d.directory
	})
}

// withService calls do with the name of a container. If there is no such container, but a
// service of this project has the name and one container, it calls do with that.
func withService[T any](ctx context.Context, d deps, eng engine, container string, do func(container string) (T, error)) (T, error) {
	return withServices(ctx, d, eng, []string{container}, ofOne(do))
}

// withServices does the same with several containers.
func withServices[T any](ctx context.Context, d deps, eng engine, containers []string, do func(containers []string) (T, error)) (T, error) {
	return retryAsServices(ctx, d, eng, containers, do, cerrdefs.IsNotFound)
}

// ofOne makes a function of a word one of a list of one word.
func ofOne[T any](do func(word string) (T, error)) func(words []string) (T, error) {
	return func(words []string) (T, error) { return do(words[0]) }
}

// withSnapshot does the same with a word that means a snapshot: the service stands for its
// container, alone or in front of ':' or '@'.
func withSnapshot[T any](ctx context.Context, d deps, eng engine, word string, do func(word string) (T, error)) (T, error) {
	return withSnapshots(ctx, d, eng, []string{word}, ofOne(do))
}

// withSnapshots does the same with several words.
func withSnapshots[T any](ctx context.Context, d deps, eng engine, words []string, do func(words []string) (T, error)) (T, error) {
	done, err := retryAsServices(ctx, d, eng, words, do, isNoSnapshot)
	if none, ok := errors.AsType[*catalog.NotFoundError](err); ok && !none.Lost {
		lost, failed := eng.Lost(ctx, catalog.ListOptions{}, nil)
		none.Lost = failed == nil && len(lost) > 0
	}
	return done, err
}

// isNoSnapshot tells whether an error says that a word means no snapshot.
func isNoSnapshot(err error) bool {
	_, none := errors.AsType[*catalog.NotFoundError](err)
	return none
}

func retryAsServices[T any](ctx context.Context, d deps, eng engine, words []string, do func(words []string) (T, error), unknown func(error) bool) (T, error) {
	done, err := do(words)
	if !unknown(err) {
		return done, err
	}
	meant, found := slices.Clone(words), false
	for i, word := range words {
		container, other := d.containerOfService(ctx, eng, word)
		err = errors.Join(err, other)
		if container != "" {
			meant[i], found = container, true
		}
	}
	if found {
		return do(meant)
	}
	return done, err
}

// servicesNamed returns the containers of the services of that name. If this project has none, those that snapshots were taken of
// are among them: docker compose down removes containers, not snapshots.
func (d deps) servicesNamed(ctx context.Context, eng engine, name string) ([]catalog.Service, error) {
	services, err := eng.Services(ctx, name)
	if err != nil || len(d.ofThisProject(services)) > 0 {
		return services, err
	}
	former, err := eng.FormerServices(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, s := range former {
		if !slices.ContainsFunc(services, func(there catalog.Service) bool { return there.Container == s.Container }) {
			services = append(services, s)
		}
	}
	return services, nil
}

// containerOfService replaces the service that a word begins with by its container. It
// returns nothing if the word begins with the name of a container or of no service, or if
// the service does not have exactly one container in this project. In the last case the
// error names its containers.
func (d deps) containerOfService(ctx context.Context, eng engine, word string) (meant string, other error) {
	name, rest := word, ""
	if at := strings.IndexAny(word, ":@"); at >= 0 {
		name, rest = word[:at], word[at:]
	}
	if _, err := labels.ParseID(name); err == nil || name == "" {
		return "", nil
	}
	services, err := d.servicesNamed(ctx, eng, name)
	if err != nil || len(services) == 0 {
		return "", nil //nolint:nilerr // the caller reports the error that it has already
	}
	containers, err := eng.Containers(ctx)
	if err != nil || slices.ContainsFunc(containers, func(c catalog.Candidate) bool { return c.Word == name }) {
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
