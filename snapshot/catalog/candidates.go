package catalog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Candidate is a word that a shell may complete, and what it stands for.
type Candidate struct{ Word, About string }

// Containers returns the names of all containers.
func (cat *Catalog) Containers(ctx context.Context) ([]Candidate, error) {
	all, err := cat.docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, dockerop.Describe(err, "list containers")
	}
	var names []Candidate
	for _, c := range all {
		for _, name := range c.Names {
			names = append(names, Candidate{strings.TrimPrefix(name, "/"), c.Image + ", " + c.State})
		}
	}
	return names, nil
}

// VolumeNames returns the names of the volumes that the container mountedBy mounts, or of all
// volumes if that is empty.
func (cat *Catalog) VolumeNames(ctx context.Context, mountedBy string) ([]Candidate, error) {
	if mountedBy != "" {
		c, err := cat.docker.InspectIfThere(ctx, mountedBy)
		if err != nil || c == nil {
			return nil, err
		}
		var names []Candidate
		for _, m := range c.Mounts {
			if m.Name != "" {
				names = append(names, Candidate{m.Name, m.Destination})
			}
		}
		return names, nil
	}
	return cat.volumeNames(ctx, filters.NewArgs())
}

// Stores returns the names of the volumes that were made to be stores.
func (cat *Catalog) Stores(ctx context.Context) ([]Candidate, error) {
	return cat.volumeNames(ctx, filters.NewArgs(filters.Arg("label", labels.KeyVersion)))
}

func (cat *Catalog) volumeNames(ctx context.Context, args filters.Args) ([]Candidate, error) {
	list, err := cat.docker.VolumeList(ctx, volume.ListOptions{Filters: args})
	if err != nil {
		return nil, dockerop.Describe(err, "list volumes")
	}
	var names []Candidate
	for _, v := range list.Volumes {
		_, ofCopy := v.Labels[labels.KeyRestoredFrom]
		if !ofCopy || args.Len() == 0 {
			names = append(names, Candidate{v.Name, v.Driver})
		}
	}
	return names, nil
}

// NetworkNames returns the names of all networks.
func (cat *Catalog) NetworkNames(ctx context.Context) ([]Candidate, error) {
	list, err := cat.docker.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return nil, dockerop.Describe(err, "list networks")
	}
	names := make([]Candidate, len(list))
	for i, n := range list {
		names[i] = Candidate{n.Name, n.Driver}
	}
	return names, nil
}

// References returns, for each snapshot, the first of its words that begins with prefix: its name,
// else its ID, else one of its tags.
func (cat *Catalog) References(ctx context.Context, prefix string) ([]Candidate, error) {
	all, err := cat.Find(ctx, nil, Namespace+"*")
	if err != nil {
		return nil, err
	}
	var found []Candidate
	for _, s := range all {
		words := []string{string(s.ID)}
		if s.Name != "" {
			words = []string{s.word(s.Name), string(s.ID)}
		}
		for _, ref := range s.Refs {
			words = append(words, s.word(ref[strings.LastIndex(ref, ":")+1:]))
		}
		if at := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, prefix) }); at >= 0 {
			found = append(found, Candidate{words[at], cmp.Or(s.Description, "of "+s.Container.Name+", "+s.Created.Format("2006-01-02 15:04 MST"))})
		}
	}
	return found, nil
}

// The labels of Compose on a service's containers.
const (
	labelOneOff    = ComposePrefix + "oneoff" // "True": docker compose run made it
	labelService   = ComposePrefix + "service"
	labelProject   = ComposePrefix + "project"
	labelDirectory = ComposePrefix + "project.working_dir"
)

// Service is a container that Compose made for a service.
type Service struct {
	Name      string
	Container string
	Project   string
	Directory string // of the project, on the client that made it
}

// Services returns the containers of the Compose services of that name, or of all services if name
// is empty.
func (cat *Catalog) Services(ctx context.Context, name string) ([]Service, error) {
	label := labelService
	if name != "" {
		label += "=" + name
	}
	list, err := cat.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return nil, dockerop.Describe(err, "list services")
	}
	services := make([]Service, len(list))
	for i, c := range list {
		services[i] = Service{Name: c.Labels[labelService], Container: dockerop.SummaryName(c), Project: c.Labels[labelProject], Directory: c.Labels[labelDirectory]}
	}
	return services, nil
}

// FormerServices returns the containers of the Compose services of that name that snapshots were taken of, the newest snapshot
// first. It lists all snapshots: ask for [Catalog.Services] first.
func (cat *Catalog) FormerServices(ctx context.Context, name string) ([]Service, error) {
	all, err := cat.Find(ctx, nil, Namespace+"*")
	if err != nil {
		return nil, err
	}
	var services []Service
	for _, s := range all {
		its := s.ContainerLabels()
		isKnown := func(known Service) bool { return known.Container == s.Container.Name }
		if its[labelService] == name && its[labelOneOff] != "True" && !slices.ContainsFunc(services, isKnown) {
			services = append(services, Service{Name: name, Container: s.Container.Name, Project: its[labelProject], Directory: its[labelDirectory]})
		}
	}
	return services, nil
}
