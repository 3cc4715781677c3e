package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// Resolve finds the snapshot that word means. A word may be
//
//	container:name, container:ID or container@age,
//	container or container:latest: its newest snapshot, safety snapshots left out,
//	a full ID, or a beginning that no other ID has,
//	a name that no other snapshot on the engine has,
//	run#0 or run#-1, the first and the last snapshot of a run.
//
// Resolve asks the engine only for what can match: listing every image takes seconds on a
// containerd image store. The error is a [NotFoundError] or an [AmbiguousError] if there is not
// exactly one.
func (cat *Catalog) Resolve(ctx context.Context, word string) (Snapshot, error) {
	if runID, number, ok := session.ParseWord(word); ok {
		return cat.ofRun(ctx, word, runID, number)
	}
	if container, when, ok := strings.Cut(word, "@"); ok {
		return cat.asOf(ctx, word, container, when)
	}
	if ref, ok := parseReference(word); ok {
		if ref.tag == labels.Latest {
			return cat.latestNamed(ctx, word, ref)
		}
		return cat.Lookup(ctx, word, ref)
	}
	if !labels.IsTag(word) && !labels.IsContainerName(word) {
		return Snapshot{}, &NotFoundError{Word: word}
	}
	var candidates []Snapshot
	var latest *Snapshot
	calls, callsCtx := errgroup.WithContext(ctx)
	if labels.IsTag(word) {
		calls.Go(func() (err error) {
			candidates, err = cat.beginningWith(callsCtx, word)
			return err
		})
	}
	if _, err := labels.ParseID(word); err != nil && labels.IsContainerName(word) {
		calls.Go(func() (err error) {
			latest, err = cat.latestIn(callsCtx, Repository(word))
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return Snapshot{}, err
	}
	found, err := pick(word, candidates)
	switch {
	case latest == nil && cerrdefs.IsNotFound(err):
		return Snapshot{}, cat.nothingOf(ctx, word, word)
	case latest == nil || err == nil && found.ImageID == latest.ImageID:
		return found, err
	case cerrdefs.IsNotFound(err), err == nil && !found.hasTag(word): // the beginning of an ID gives way
		return *latest, nil
	}
	return Snapshot{}, Ambiguous(word, append(matches(word, candidates), *latest))
}

// ResolveOne does the same for an operation that cannot be taken back: a container's name alone is a [ContainerError].
func (cat *Catalog) ResolveOne(ctx context.Context, word string) (Snapshot, error) {
	s, err := cat.Resolve(ctx, word)
	if none, ok := errors.AsType[*NotFoundError](err); ok && none.OnlySafety && labels.IsContainerName(word) {
		return Snapshot{}, &ContainerError{Name: word}
	}
	if err != nil {
		return Snapshot{}, err
	}
	return s, s.CheckNamedBy(word)
}

// CheckNamedBy fails with a [ContainerError] if a word that means the snapshot names only its container.
func (s Snapshot) CheckNamedBy(word string) error {
	if word == s.Container.Name {
		return &ContainerError{Name: word, IsLine: s.Kind == labels.KindState}
	}
	return nil
}

// beginningWith returns the snapshots that have a tag which begins with word, newest first. The
// engine lists only the matching tags of an image, so each image is inspected.
func (cat *Catalog) beginningWith(ctx context.Context, word string) ([]Snapshot, error) {
	pattern := Namespace + "*:" + word + "*"
	images, err := cat.ListImages(ctx, pattern)
	if err != nil {
		return nil, err
	}
	found := make([]Snapshot, len(images))
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(dockerop.MaxConcurrentCalls)
	for i, summary := range images {
		calls.Go(func() error {
			img, err := cat.docker.ImageInspect(ctx, summary.ID)
			if err != nil && !cerrdefs.IsNotFound(err) {
				return fmt.Errorf("inspect image %s: %w", summary.ID, err)
			}
			if s, err := cat.decodeHeld(ctx, img); err == nil {
				found[i] = s
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(s Snapshot) bool { return s.ID == "" })
	slices.SortFunc(found, newestFirst)
	return slices.CompactFunc(found, func(a, b Snapshot) bool { return a.ImageID == b.ImageID }), nil
}

// Lookup returns the snapshot that has the tag ref. word is what the user wrote, for the error. An
// image that has the tag but is not a snapshot of its container counts as not found. The error is an
// [UntaggedError] if it was one.
func (cat *Catalog) Lookup(ctx context.Context, word string, ref Tag) (Snapshot, error) {
	found, err := cat.docker.ImageInspect(ctx, ref.String())
	if cerrdefs.IsNotFound(err) {
		return Snapshot{}, cat.notNamed(ctx, word, ref)
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("inspect image %s: %w", ref, err)
	}
	s, err := cat.decodeHeld(ctx, found)
	if errors.Is(err, labels.ErrAbsent) || err == nil && !slices.Contains(s.Refs, ref.String()) {
		if err := cat.checkUntagged(ctx, found, ref.String()); err != nil {
			return Snapshot{}, err
		}
		return Snapshot{}, &NotFoundError{Word: word} // an image of the user's own, or one that was built FROM a snapshot
	}
	if err != nil {
		return Snapshot{}, &UnreadableError{Ref: ref.String(), Err: err}
	}
	return s, nil
}

// notNamed returns the error for a tag that no image has. If it is a name that snapshots have lost, the error says which they are:
// somebody may have removed it by hand, or a removal was killed after it had taken the name away and before the snapshot.
func (cat *Catalog) notNamed(ctx context.Context, word string, ref Tag) error {
	none := &NotFoundError{Word: word}
	if labels.CheckName(ref.tag) != nil {
		return none
	}
	images, err := cat.imagesNamed(ctx, ref)
	if err != nil {
		return err
	}
	had, _ := decodeAll(images)
	var ids []string
	for _, s := range had {
		if s.LostName == ref.tag {
			ids = append(ids, string(s.ID))
		}
	}
	if len(ids) > 0 {
		none.Reason = fmt.Sprintf("no such snapshot: %s: it has lost this name, and is still there as %s", word, strings.Join(ids, ", or "))
	}
	return none
}

// imagesNamed lists the images of a container's snapshots whose labels have the name of a tag, whether they have the tag or not.
func (cat *Catalog) imagesNamed(ctx context.Context, name Tag) ([]image.Summary, error) {
	images, err := cat.imagesLabelled(ctx, name.repository, labels.KeyName, name.tag)
	return images, dockerop.Describe(err, "look for snapshots named "+name.tag)
}

// imagesLabelled lists the images of a repository that have a label. An engine with the containerd image store looks at the labels
// of an image in a quarter of the time that it takes to list it.
func (cat *Catalog) imagesLabelled(ctx context.Context, repository, key, value string) ([]image.Summary, error) {
	return cat.docker.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(
		filters.Arg("reference", repository), filters.Arg("label", key+"="+value),
	)})
}

// pick returns the only snapshot among all that word means.
func pick(word string, all []Snapshot) (Snapshot, error) {
	switch found := matches(word, all); len(found) {
	case 0:
		return Snapshot{}, &NotFoundError{Word: word}
	case 1:
		return found[0], nil
	default:
		return Snapshot{}, Ambiguous(word, found)
	}
}

// matches returns the snapshots that have word as a tag or, if none has, those whose ID begins with
// it.
func matches(word string, all []Snapshot) []Snapshot {
	var exact, prefixed []Snapshot
	ref, isRef := parseReference(word)
	for _, s := range all {
		switch {
		case isRef && slices.Contains(s.Refs, ref.String()), s.hasTag(word):
			exact = append(exact, s)
		case word != "" && strings.HasPrefix(string(s.ID), word):
			prefixed = append(prefixed, s)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return prefixed
}

// Ambiguous returns the error for a word that means each of the snapshots.
func Ambiguous(word string, found []Snapshot) error {
	candidates := make([]string, len(found))
	for i, s := range found {
		candidates[i] = s.word(s.Title())
	}
	return &AmbiguousError{Word: word, Candidates: candidates}
}

// latestIn returns the newest snapshot of a repository, even if the tag latest was removed. It skips safety snapshots, which hold a
// state that the user has thrown away. It returns nil if no other exists.
func (cat *Catalog) latestIn(ctx context.Context, repository string) (*Snapshot, error) {
	held, err := cat.Holder(ctx, Tag{repository, labels.Latest})
	if err != nil || held.Snapshot != nil && !held.Snapshot.IsSafety() {
		return held.Snapshot, err
	}
	all, err := cat.Find(ctx, nil, repository)
	if err != nil {
		return nil, err
	}
	newest := slices.IndexFunc(all, func(s Snapshot) bool { return !s.IsSafety() })
	if newest < 0 {
		return nil, nil //nolint:nilnil // none is no error
	}
	return &all[newest], nil
}

// latestNamed finds what container:latest means.
func (cat *Catalog) latestNamed(ctx context.Context, word string, ref Tag) (Snapshot, error) {
	latest, err := cat.latestIn(ctx, ref.repository)
	switch {
	case err != nil:
		return Snapshot{}, err
	case latest == nil:
		return Snapshot{}, cat.nothingOf(ctx, word, strings.TrimSuffix(word, ":"+labels.Latest))
	}
	return *latest, nil
}

// asOf returns the snapshot with the state that a container had at a time, which may be a duration before now: the newest one that is
// not newer or, if the container was restored in place since then, the one that it was restored from.
func (cat *Catalog) asOf(ctx context.Context, word, container, when string) (Snapshot, error) {
	limit, ok := parsePast(when, cat.now())
	if !ok || !labels.IsContainerName(container) {
		return Snapshot{}, fmt.Errorf("invalid snapshot %q: after @ use something like 5m, 2026-03-14T09:26 or 2026-03-14", word)
	}
	all, err := cat.Find(ctx, nil, Repository(container))
	if err != nil {
		return Snapshot{}, err
	}
	if len(all) == 0 {
		return Snapshot{}, cat.nothingOf(ctx, container, container)
	}
	restores, err := cat.restoresInPlace(ctx, container, all)
	if err != nil {
		return Snapshot{}, err
	}
	at := slices.IndexFunc(all, func(s Snapshot) bool { return !s.IsSafety() && !s.Created.After(limit) })
	last := slices.IndexFunc(restores, func(r Restore) bool { return !r.At.After(limit) })
	switch {
	case last >= 0 && (at < 0 || !restores[last].At.Before(all[at].Created)):
		return cat.restoredThen(ctx, word, restores[last])
	case at < 0:
		oldest := all[len(all)-1]
		return Snapshot{}, &NotFoundError{Word: word, Reason: fmt.Sprintf("container %s has no snapshot that old: the oldest, %s, was taken at %s",
			container, oldest.Title(), oldest.Created.In(limit.Location()).Format("2006-01-02T15:04:05"))}
	}
	return all[at], nil
}

// restoresInPlace returns the restores in place of a container, the newest first. all are its snapshots. A safety snapshot stands for a
// restore that was done: rolling back removes it. The restore counts from its time on: its state was thrown away then.
func (cat *Catalog) restoresInPlace(ctx context.Context, name string, all []Snapshot) ([]Restore, error) {
	containers, err := cat.RestoredContainers(ctx)
	if err != nil {
		return nil, err
	}
	restores := Traces{Snapshots: all, Containers: containers}.Restores()
	restores = slices.DeleteFunc(restores, func(r Restore) bool { return !r.InPlace || r.Container != name })
	for i, r := range restores {
		if safety := slices.IndexFunc(all, func(s Snapshot) bool { return s.ID == r.Safety }); safety >= 0 {
			restores[i].At = all[safety].Created
		}
	}
	return restores, nil
}

// restoredThen returns the snapshot that a restore brought back.
func (cat *Catalog) restoredThen(ctx context.Context, word string, r Restore) (Snapshot, error) {
	s, err := cat.Resolve(ctx, string(r.Snapshot))
	if cerrdefs.IsNotFound(err) {
		return Snapshot{}, &NotFoundError{Word: word, Reason: fmt.Sprintf("container %s had been restored from snapshot %s at that time, which is gone",
			r.Container, r.Snapshot)}
	}
	return s, err
}

// nothingOf returns the error for a word that names a container, or may do so, if it finds no snapshot that the word can mean.
func (cat *Catalog) nothingOf(ctx context.Context, word, container string) error {
	none := &NotFoundError{Word: word}
	if !labels.IsContainerName(container) {
		return none
	}
	if all, err := cat.Find(ctx, nil, Repository(container)); err == nil && len(all) > 0 {
		none.OnlySafety = true
		none.Reason = fmt.Sprintf("container %s has only safety snapshots; the newest is %s", container, all[0].Title())
		return none
	}
	c, err := cat.docker.InspectIfThere(ctx, container)
	if err == nil && c != nil && dockerop.ContainerName(*c) == container {
		none.Reason = fmt.Sprintf("container %s has no snapshots", container)
	}
	return none
}

// parsePast reads a duration before now, or a time. A time without a zone is in that of now.
func parsePast(value string, now time.Time) (time.Time, bool) {
	if limit, ok := parseAge(value, now); ok {
		return limit.In(now.Location()), true
	}
	value = strings.Replace(value, " ", "T", 1)
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if limit, err := time.ParseInLocation(layout, value, now.Location()); err == nil {
			return limit, true
		}
	}
	return time.Time{}, false
}
