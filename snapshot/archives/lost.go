package archives

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Lost is a snapshot that has lost its image, as its record in the store says. It has no image and no tags.
type Lost struct {
	catalog.Snapshot

	Since   time.Time // when the image was first missed
	Until   time.Time // its archives are kept at least until then
	Foreign bool      // its record is not known to be of this engine
}

// Record has the store that holds the archives of a snapshot know what its labels say, so that they are not lost with
// the image.
func (a *Archives) Record(ctx context.Context, s catalog.Snapshot) error {
	if !s.UsesStore() {
		return nil
	}
	volumes, err := a.At(ctx, s)
	if err != nil {
		return err
	}
	own, err := labels.Encode(s.Labelled())
	if err != nil {
		return fmt.Errorf("describe snapshot %s: %w", s.ID, err)
	}
	return volumes.Record(ctx, ClaimOf(s.Record), own)
}

// Stores returns the services for all stores on the engine: the one of new snapshots, and those that this program has
// made. If the latter cannot be listed, it returns the first together with the error.
func (a *Archives) Stores(ctx context.Context) ([]Service, error) {
	stores := []Service{a.volumes}
	made, err := a.StoreNames(ctx)
	for _, name := range made {
		if name != a.volumes.Store() {
			stores = append(stores, a.volumes.At(volumebackup.StoreRef{Name: name}))
		}
	}
	return stores, err
}

// StoreNames returns the volumes of the stores that this program has made.
func (a *Archives) StoreNames(ctx context.Context) ([]string, error) {
	names, err := a.volumesWith(ctx, filters.Arg("label", labels.KeyStoreID))
	return names, dockerop.Describe(err, "list stores")
}

// VolumeNames lists all volumes of the engine. It never returns nil without an error.
func (a *Archives) VolumeNames(ctx context.Context) ([]string, error) {
	names, err := a.volumesWith(ctx)
	return names, dockerop.Describe(err, "list volumes")
}

func (a *Archives) volumesWith(ctx context.Context, wanted ...filters.KeyValuePair) ([]string, error) {
	list, err := a.docker.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(wanted...)})
	names := []string{}
	for _, v := range list.Volumes {
		names = append(names, v.Name)
	}
	return names, err
}

// Lost lists the snapshots of this engine that have lost their images while a store still has what their volumes held.
// It warns of those whose records cannot be read, and of stores that cannot: these keep nobody from what another store
// has. If it finds nothing, such a store is an error.
func (a *Archives) Lost(ctx context.Context, p plan.Progress) ([]Lost, error) {
	stores := []Service{a.volumes}
	if !a.given {
		var err error
		if stores, err = a.Stores(ctx); err != nil {
			return nil, err
		}
	}
	return a.lostIn(ctx, stores, p)
}

func (a *Archives) lostIn(ctx context.Context, stores []Service, p plan.Progress) ([]Lost, error) {
	engine, err := a.docker.Identify(ctx)
	if err != nil {
		return nil, err
	}
	key, err := a.catalog.KnownKey(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := a.Seen(ctx, &engine)
	if err != nil {
		return nil, err
	}
	var all []Lost
	var unread []error
	for _, store := range stores {
		found, err := store.Lost(ctx, *seen)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			unread = append(unread, err)
			continue
		}
		for _, l := range found {
			one, err := decodeLost(l)
			if err != nil {
				p.Warn("list", fmt.Sprintf("lost snapshot %s is left out because its record in store %s cannot be read: %v", l.Snapshot, store.Store(), err))
				continue
			}
			one.Foreign = one.IsForeign(engine.ID, key)
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return nil, errors.Join(unread...)
	}
	for _, err := range unread {
		p.Warn("list", fmt.Sprintf("what a store has is left out: %v", err))
	}
	return all, nil
}

// decodeLost reads the record of a lost snapshot. Anybody who can write to the store may have made it.
func decodeLost(l volumebackup.Lost) (Lost, error) {
	record, err := labels.Decode(l.Labels)
	switch {
	case l.Labels == nil:
		return Lost{}, errors.New("it is missing or damaged")
	case err != nil:
		return Lost{}, err
	case string(record.ID) != l.Snapshot:
		return Lost{}, errors.New("it is the record of another")
	}
	return Lost{Snapshot: catalog.Snapshot{Record: record}, Since: l.Since, Until: l.Until}, nil
}

// FindLost finds the lost snapshot that a word means: an ID or the beginning of one, container:ID, container:name or a
// name; a container means the newest of it. The error is a [catalog.NotFoundError] or a [catalog.AmbiguousError] if
// there is not exactly one, and a [catalog.UntaggedError] if its image can still be had.
func (a *Archives) FindLost(ctx context.Context, word string, p plan.Progress) (catalog.Snapshot, error) {
	all, err := a.Lost(ctx, p)
	if err != nil {
		return catalog.Snapshot{}, err
	}
	found, err := pickLost(word, all)
	if err != nil {
		return catalog.Snapshot{}, err
	}
	return found, a.catalog.CheckGone(ctx, found)
}

func pickLost(word string, all []Lost) (catalog.Snapshot, error) {
	var named, begun []catalog.Snapshot
	var newest catalog.Snapshot
	container, rest, hasContainer := strings.Cut(word, ":")
	for _, l := range all {
		tag := word
		if hasContainer && l.Container.Name == container {
			tag = rest
		}
		switch {
		case string(l.ID) == tag || l.Name != "" && l.Name == tag:
			named = append(named, l.Snapshot)
		case tag != "" && strings.HasPrefix(string(l.ID), tag):
			begun = append(begun, l.Snapshot)
		}
		if l.Container.Name == word && l.Created.After(newest.Created) {
			newest = l.Snapshot
		}
	}
	if len(named) == 0 {
		named = begun
	}
	switch {
	case len(named) == 0 && newest.ID != "":
		return newest, nil
	case len(named) == 1 && (newest.ID == "" || newest.ID == named[0].ID):
		return named[0], nil
	case len(named) == 0:
		return catalog.Snapshot{}, &catalog.NotFoundError{Word: word, Reason: "no lost snapshot " + word, Lost: true}
	}
	if newest.ID != "" {
		named = append(named, newest)
	}
	return catalog.Snapshot{}, catalog.Ambiguous(word, named)
}

// TellCleaned warns that somebody has cleaned up images of this program, if the store of new snapshots is there while no
// image of a worker is: an engine that has the one had the other. The image comes back, so that nobody is told twice.
func (a *Archives) TellCleaned(ctx context.Context, stores KnownStores, p plan.Progress) {
	if stores[a.volumes.Store()].id == "" {
		return
	}
	_ = a.volumes.LoadImage(ctx) // if that fails, the next list tells it again
	p.Send(plan.Event{
		Level: plan.LevelWarning, Phase: "list", Topic: plan.TopicCleaned,
		Text: "images of this program were removed, by docker system prune -a perhaps: snapshots may have been among them",
	})
}

// NoBaseError means that a snapshot has lost its image, and that the image that its container ran from is gone, too.
// It is an errdefs not-found error.
type NoBaseError struct {
	Snapshot labels.ID
	Image    string // as the container named it
}

func (e *NoBaseError) Error() string {
	return fmt.Sprintf("snapshot %s has lost its image, and image %s, which its container ran from, is not on this engine", e.Snapshot, e.Image)
}

// Unwrap gives the error its class.
func (e *NoBaseError) Unwrap() error { return cerrdefs.ErrNotFound }

// OnBase returns a lost snapshot with the image that its container ran from in the place of its own. It warns of what
// that means, also if the name of that image means another one by now.
func (a *Archives) OnBase(ctx context.Context, s catalog.Snapshot, p plan.Progress) (catalog.Snapshot, error) {
	for _, ref := range []string{s.Container.ImageID, s.Container.Image} {
		if ref == "" {
			continue
		}
		found, err := a.docker.ImageInspect(ctx, ref)
		if cerrdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return s, fmt.Errorf("inspect image %s: %w", ref, err)
		}
		s.ImageID, s.Base = found.ID, found.ID
		if named, err := a.docker.ImageInspect(ctx, s.Container.Image); err == nil && named.ID == found.ID {
			s.Base = s.Container.Image
		}
		if found.ID != s.Container.ImageID {
			p.Warn("check", fmt.Sprintf("image %s is not the one that container %s ran from: it has another content by now", s.Container.Image, s.Container.Name))
		}
		p.Warn("check", fmt.Sprintf("what the root filesystem of container %s had beyond image %s is gone: only its volumes are as they were", s.Container.Name, s.Container.Image))
		return s, nil
	}
	return s, &NoBaseError{Snapshot: s.ID, Image: s.Container.Image}
}
