package diff

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// side is one of the two that are compared: a snapshot or a container.
type side struct {
	name     string
	snapshot *catalog.Snapshot // nil: a container
	root     content
	volumes  map[string]content // by destination
}

// content is what one side has at one place.
type content struct {
	isThere  bool
	name     string                   // key of the volume, or of the bind mount
	archive  *volumebackup.ArchiveRef // of a snapshot
	live     string                   // key of what a container has there
	optional bool                     // a bind mount whose content is not in the snapshot: it is compared with no other such one
	image    string                   // key of a root filesystem
	source   string                   // the image or the container that has this root filesystem
	isImage  bool
	// Of the root filesystem of a snapshot: the container that was captured, when, and all images that are the snapshot.
	container string
	taken     time.Time
	images    []string
	walk      *walkable // of that of a container: nil if it has to be exported
	hidden    []string  // of that of a container: what a walk has not seen
	missing   string    // why it cannot be compared
	// excluded is what the archive does not have; of a container's volume, what is not looked at.
	excluded *labels.Exclusions
	afresh   bool // read a container's volume, also if the store knows what it holds
}

func (c content) tree() volumebackup.ComparedTree {
	return volumebackup.ComparedTree{Archive: c.archive, Volume: c.live, Excluded: c.excluded, Afresh: c.afresh, Image: c.image, Hidden: c.hidden}
}

// part is a place that both sides are compared at.
type part struct {
	volume      string
	names       []string // of the volume on either side
	destination string
	old, now    content
}

// sides looks up what is compared.
func (d *Differ) sides(ctx context.Context, o Options) (before, after side, err error) {
	old, err := d.snapshotSide(ctx, o.Old, o.Lost)
	if err != nil {
		return side{}, side{}, err
	}
	word := o.New
	if word == "" {
		word = old.snapshot.Container.Name
	}
	found, err := d.docker.InspectIfThere(ctx, word)
	switch {
	case err != nil:
		return side{}, side{}, err
	case found != nil:
		return old, containerSide(*found), nil
	case o.New == "" && o.Left:
		now, err := d.leftSide(ctx, old)
		return old, now, err
	case o.New == "":
		return side{}, side{}, &GoneError{Container: word}
	}
	now, err := d.snapshotSide(ctx, o.New, false)
	return old, now, err
}

// GoneError says that the container that a snapshot was taken of does not exist any more.
type GoneError struct{ Container string }

func (e *GoneError) Error() string { return fmt.Sprintf("there is no container %s", e.Container) }

func (d *Differ) snapshotSide(ctx context.Context, word string, isLost bool) (side, error) {
	resolve := d.catalog.Resolve
	if isLost {
		resolve = func(ctx context.Context, word string) (catalog.Snapshot, error) {
			return d.archives.FindLost(ctx, word, nil)
		}
	}
	s, err := resolve(ctx, word)
	if err != nil {
		return side{}, err
	}
	if err := s.CheckContainer(); err != nil {
		return side{}, err
	}
	all := map[string]content{}
	for _, m := range s.Mounts {
		c := content{isThere: true, name: m.Key()}
		switch {
		case m.Archive != nil:
			c.archive = &volumebackup.ArchiveRef{Snapshot: string(s.ID), Archive: m.Archive.Index, Root: m.Archive.Root}
			c.excluded = m.Archive.Excluded
		case mount.Type(m.Type) == mount.TypeVolume:
			c.missing = fmt.Sprintf("its content is not in snapshot %s", s.Title())
		case mount.Type(m.Type) == mount.TypeBind:
			c.missing, c.optional = fmt.Sprintf("its content is not in snapshot %s", s.Title()), true
		default:
			continue
		}
		all[m.Destination] = c
	}
	return side{
		name: string(s.ID), snapshot: &s, volumes: all,
		root: content{
			isThere: true, image: imageKey(s.Layers), source: s.ImageID, isImage: true,
			container: s.Container.ID, taken: s.Created, images: s.Images(),
		},
	}, nil
}

func containerSide(c container.InspectResponse) side {
	all := map[string]content{}
	for _, m := range c.Mounts {
		if key := dockerop.MountKey(m); key != "" {
			all[m.Destination] = content{isThere: true, name: key, live: key, optional: labels.IsPathKey(key)}
		}
	}
	name := dockerop.ContainerName(c)
	return side{name: name, volumes: all, root: content{
		isThere: true, name: name, image: imageKey([]string{c.ID}), source: c.ID, walk: walkableOf(c),
	}}
}

// leftSide is what is left of a container that is gone: its volumes.
func (d *Differ) leftSide(ctx context.Context, old side) (side, error) {
	left := side{name: "what is left of " + old.snapshot.Container.Name, volumes: map[string]content{}}
	for destination, c := range old.volumes {
		err := d.isLeft(ctx, c.name)
		switch {
		case cerrdefs.IsNotFound(err):
		case err != nil:
			return side{}, fmt.Errorf("inspect %s: %w", labels.DescribeKey(c.name), err)
		default:
			left.volumes[destination] = content{isThere: true, name: c.name, live: c.name, optional: c.optional}
		}
	}
	return left, nil
}

// isLeft fails with an errdefs not-found error if there is no such volume or directory.
func (d *Differ) isLeft(ctx context.Context, key string) error {
	if labels.IsPathKey(key) {
		return d.docker.CheckHostPath(ctx, key)
	}
	_, err := d.docker.VolumeInspect(ctx, key)
	return err
}

// imageKey is the key of what is known of a root filesystem: equal layers have equal keys.
func imageKey(layers []string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(layers, "\n"))))
}

// pair lists the places where the sides may differ, the root filesystem first.
func pair(before, after side, o Options, p plan.Progress) ([]part, error) {
	all := []part{{volume: Rootfs, destination: "/", old: before.root, now: after.root}}
	destinations := maps.Clone(before.volumes)
	maps.Copy(destinations, after.volumes)
	for _, destination := range slices.Sorted(maps.Keys(destinations)) {
		old, now := before.volumes[destination], after.volumes[destination]
		if (old.optional || !old.isThere) && (now.optional || !now.isThere) {
			continue // no snapshot holds anything of it
		}
		name := now.name
		if !now.isThere {
			name = old.name
		}
		all = append(all, part{volume: name, names: []string{old.name, now.name}, destination: destination, old: old, now: now})
	}
	for _, word := range o.Volumes {
		if !slices.ContainsFunc(all, func(p part) bool { return p.isAbout([]string{word}) }) {
			return nil, &UnknownVolumeError{Volume: word}
		}
	}
	var parts []part
	for _, part := range all {
		isIdle := part.isSame() && (!o.Strict || len(o.Paths) == 0) // the paths are looked up there, too
		if !part.isAbout(o.Volumes) || part.isIn(o.Without) || isIdle || slices.ContainsFunc(parts, part.repeats) {
			continue
		}
		if missing := part.old.missing + part.now.missing; missing != "" {
			p.Warn("compare", fmt.Sprintf("%s is not compared: %s", labels.DescribeKey(part.volume), missing))
			continue
		}
		part.now.excluded, part.now.afresh = part.exclusions(), o.Afresh
		parts = append(parts, part)
	}
	return parts, nil
}

// exclusions are what is not looked at in the volume of a container: what the snapshot has left out, so that it does not
// seem to be new. What the snapshot has is looked at, whatever a .gitignore says by now.
func (p part) exclusions() *labels.Exclusions {
	if p.now.live == "" || p.old.excluded.IsEmpty() {
		return p.now.excluded
	}
	excluded := *p.old.excluded
	excluded.Entries = 0
	excluded.Kept = &labels.KeptArchive{Snapshot: labels.ID(p.old.archive.Snapshot), Index: p.old.archive.Archive, Root: p.old.archive.Root}
	return &excluded
}

// isRoot tells whether a part is the root filesystem: a volume may have its name.
func (p part) isRoot() bool { return p.destination == "/" }

// isIn tells whether a part is one of these volumes.
func (p part) isIn(volumes []string) bool { return !p.isRoot() && slices.Contains(volumes, p.volume) }

// isSame tells whether a part is known to have no differences.
func (p part) isSame() bool {
	if p.isRoot() {
		return p.old.image == p.now.image
	}
	return p.old.archive != nil && p.now.archive != nil && p.old.archive.Root != "" && p.old.archive.Root == p.now.archive.Root
}

// repeats tells whether a part is of the same volumes as another one: a volume may be mounted at several places.
func (p part) repeats(other part) bool {
	return !p.isRoot() && !other.isRoot() && p.old.isThere == other.old.isThere && p.now.isThere == other.now.isThere &&
		p.old.name == other.old.name && p.now.name == other.now.name
}
