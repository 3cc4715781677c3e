package capture

import (
	"context"
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
)

// Source is everything that was observed about a container before its snapshot.
type Source struct {
	options   Options
	Container container.InspectResponse
	config    labels.Config
	image     *image.InspectResponse // that it runs from; nil if it is gone
	engine    dockerop.Info
	key       []byte   // of the engine
	size      int64    // bytes in its writable layer
	Whiteouts []string // paths that the commit takes for removals
	parent    labels.ID
	Mounts    []labels.Mount
	included  []string       // keys of the bind mounts that are captured
	storage   storage.Map    // of the engine's volumes, if it mounts some
	latest    catalog.Holder // of the tag latest
	named     catalog.Holder // of the tag that the new snapshot's name becomes
}

// Observe inspects containers and everything around them. Independent calls run concurrently:
// the whole command should cost little more than the commit.
func (cr *Capturer) Observe(ctx context.Context, o []Options, early dockerop.EarlyInfo, p plan.Progress) ([]Source, error) {
	sources := make([]Source, len(o))
	calls, callsCtx := errgroup.WithContext(ctx)
	for i, one := range o {
		calls.Go(func() (err error) {
			sources[i], err = cr.observe(callsCtx, one, early, p)
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, s := range sources {
		if id := s.Container.ID; seen[id] {
			return nil, fmt.Errorf("container %s is named twice: %w", dockerop.ContainerName(s.Container), cerrdefs.ErrInvalidArgument)
		}
		seen[s.Container.ID] = true
	}
	return sources, nil
}

// observe inspects one container.
func (cr *Capturer) observe(ctx context.Context, o Options, early dockerop.EarlyInfo, p plan.Progress) (Source, error) {
	s := Source{options: o}
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		s.engine, err = early.Info()
		return err
	})
	calls.Go(func() (err error) {
		s.key, err = cr.catalog.EngineKey(callsCtx)
		return err
	})
	calls.Go(func() (err error) {
		s.size, err = cr.writableSize(callsCtx, o.Container)
		return err
	})
	if !o.RootChecked {
		calls.Go(func() (err error) {
			s.Whiteouts, err = cr.docker.Whiteouts(callsCtx, o.Container)
			return err
		})
	}
	calls.Go(func() error {
		found, raw, err := cr.docker.ContainerInspectWithRaw(callsCtx, o.Container, false)
		if err != nil {
			return dockerop.AsNoContainer(err)
		}
		s.Container = found
		s.config, err = runconfig.Capture(raw)
		if err != nil {
			return fmt.Errorf("read configuration of container %s: %w", o.Container, err)
		}
		if s.included, err = o.Binds.keysOf(found); err != nil {
			return err
		}
		if !o.Volumes.None && len(dockerop.MountedVolumes(found)) > 0 || len(s.included)+len(o.Attachments) > 0 {
			cr.volumes.Prepare(early.Ctx) //nolint:contextcheck // it goes on when this step is over
		}
		return cr.observeImages(callsCtx, &s, o, p)
	})
	if err := calls.Wait(); err != nil {
		return Source{}, err
	}
	return s, s.check()
}

// writableSize asks for the bytes in a container's writable layer. The engine has to
// count them, so nothing else waits for that.
func (cr *Capturer) writableSize(ctx context.Context, container string) (int64, error) {
	found, _, err := cr.docker.ContainerInspectWithRaw(ctx, container, true)
	if err != nil || found.SizeRw == nil {
		return 0, dockerop.AsNoContainer(err)
	}
	return *found.SizeRw, nil
}

// observeImages looks up what Create has to know of images and volumes, each by
// its name.
func (cr *Capturer) observeImages(ctx context.Context, s *Source, o Options, p plan.Progress) error {
	name := dockerop.ContainerName(s.Container)
	if o.As != nil {
		name = o.As.Container.Name
	}
	calls, ctx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		s.image, err = cr.baseImage(ctx, s.Container.Image)
		return err
	})
	calls.Go(func() (err error) {
		s.latest, err = cr.catalog.Holder(ctx, catalog.TagOf(name, labels.Latest))
		s.parent = catalog.FindParent(s.latest.Snapshot, s.Container)
		return err
	})
	calls.Go(func() (err error) {
		s.config.Peers, err = cr.namespacePeers(ctx, s.Container.HostConfig)
		return err
	})
	calls.Go(func() (err error) {
		s.Mounts, err = cr.captureMounts(ctx, s.Container, s.included)
		return err
	})
	if len(dockerop.MountedVolumes(s.Container))+len(s.included) > 0 {
		calls.Go(func() (err error) {
			if s.storage, err = storage.Observe(ctx, cr.docker, p); err != nil {
				return err
			}
			return checkStore(s.included, s.storage, cr.volumes.Store())
		})
	}
	if o.Name != "" {
		calls.Go(func() (err error) {
			s.named, err = cr.catalog.ObserveName(ctx, catalog.TagOf(name, o.Name), name, o.Reuse)
			if err != nil { // perhaps by what makes this request needless
				err = errors.Join(cr.checkWanted(ctx, name, o), err)
			}
			return err
		})
	}
	return calls.Wait()
}

// namespacePeers are the names, by their IDs, of the containers whose namespaces a
// container shares. When one of them is gone, only they tell which it was.
func (cr *Capturer) namespacePeers(ctx context.Context, host *container.HostConfig) (map[string]string, error) {
	if host == nil {
		return nil, nil
	}
	var names map[string]string
	for _, id := range []string{host.NetworkMode.ConnectedContainer(), host.IpcMode.Container(), host.PidMode.Container()} {
		if id == "" || names[id] != "" {
			continue
		}
		c, err := cr.docker.InspectIfThere(ctx, id)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		if names == nil {
			names = map[string]string{}
		}
		names[id] = dockerop.ContainerName(*c)
	}
	return names, nil
}

func (cr *Capturer) baseImage(ctx context.Context, id string) (*image.InspectResponse, error) {
	found, err := cr.docker.ImageInspect(ctx, id)
	if cerrdefs.IsNotFound(err) {
		return nil, nil // removed by force: the container still has its layers
	}
	if err != nil {
		return nil, fmt.Errorf("inspect image %s: %w", id, err)
	}
	return &found, nil
}

// check refuses containers that cannot be captured.
func (s Source) check() error {
	name := dockerop.ContainerName(s.Container)
	switch state := s.Container.State; {
	case state.Dead || state.Status == "dead":
		return fmt.Errorf("container %s is dead: remove it with docker rm", name)
	case state.Status == "removing":
		return fmt.Errorf("container %s is being removed", name)
	case s.Container.Platform == "windows" && state.Running:
		return fmt.Errorf("container %s is a running Windows container, which the engine cannot commit: stop it first", name)
	case s.latest.Snapshot != nil && s.latest.Snapshot.Kind == labels.KindState:
		return &catalog.LineError{Name: name, IsLine: true}
	}
	return nil
}

// Record is what the labels of a snapshot say of the container.
func (s Source) Record() labels.Record { return s.record("", Options{}) }

// record is what the labels of this snapshot will say.
func (s Source) record(id labels.ID, o Options) labels.Record {
	c := s.Container
	return labels.Record{
		ID: id, Name: o.Name, Description: o.Description, Tags: o.Tags, Trigger: o.trigger(),
		RunID: o.RunID, StepID: o.StepID, Number: o.Number, Parent: s.parent, Restores: o.Restores, Scope: o.Scope, Group: o.Group,
		Container: labels.Container{
			ID: c.ID, Name: dockerop.ContainerName(c), State: dockerop.ContainerState(c.State), Health: dockerop.ContainerHealth(c.State),
			Image: c.Config.Image, ImageID: c.Image,
		},
		EngineID: s.engine.ID, Platform: s.platform(), Config: s.config, Mounts: s.Mounts,
		Whiteouts: s.Whiteouts[:min(len(s.Whiteouts), labels.MaxWhiteouts)],
		Size:      s.size, Expires: o.Expires, Pinned: o.Pinned, Meta: o.Meta,
		IdempotencyKey: o.IdempotencyKey, Usage: o.usage(),
	}
}

// platform is os/arch[/variant]; a container itself knows only the first.
func (s Source) platform() string {
	if s.image == nil {
		return s.Container.Platform
	}
	return dockerop.ImagePlatform(*s.image)
}
