package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Namespace is the part of every snapshot's repository before the container.
const Namespace = "cua-snapshot/"

// legal is what repositories may be called, and illegal every run of characters
// that is not a part of a word: the grammar knows '.', '_', '__' and any number
// of '-' between two words.
var (
	legal   = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)
	illegal = regexp.MustCompile(`[^a-z0-9]+`)
)

// Engines take container names of any length, but repositories of 255 characters,
// docker.io/ included.
const (
	maxRepository = 255 - len("docker.io/") - len(Namespace)
	digestMark    = "--"
	digestDigits  = 16
)

// Repository is where the snapshots of the container of that name are, and those
// of no other container. Most names are repositories as they are. Of the others,
// which have capitals or separators that repositories cannot have, it is the
// part that can be had, and a digest of the whole name. No name that is kept as
// it is ends like that, so no two names meet.
func Repository(containerName string) string {
	name := strings.TrimPrefix(containerName, "/")
	if len(name) <= maxRepository && legal.MatchString(name) && !hasDigest(name) {
		return Namespace + name
	}
	digest := sha256.Sum256([]byte(name))
	shown := illegal.ReplaceAllStringFunc(strings.ToLower(name), func(separator string) string {
		if separator == "." || separator == "_" || separator == "__" || strings.Trim(separator, "-") == "" {
			return separator
		}
		return "-"
	})
	shown = shown[:min(len(shown), maxRepository-len(digestMark)-digestDigits)]
	return fmt.Sprintf("%s%s%s%x", Namespace, strings.Trim(shown, "._-"), digestMark, digest[:digestDigits/2])
}

// hasDigest tells whether a name ends as the repositories do that have a digest.
func hasDigest(name string) bool {
	at := len(name) - len(digestMark) - digestDigits
	return at >= 0 && strings.HasPrefix(name[at:], digestMark) && labels.IsDigits(name[at+len(digestMark):], digestDigits, digestDigits)
}

// Tag is a reference to one tag, as the user or the engine writes it.
type Tag struct{ repository, tag string }

// TagOf is a tag in the repository of a container.
func TagOf(container, tag string) Tag { return Tag{Repository(container), tag} }

func (t Tag) String() string { return t.repository + ":" + t.tag }

// parseReference reads "web:name", in which web is a container, and
// "cua-snapshot/web:name", which is a tag as the engine shows it. It fails for a
// word without a tag.
func parseReference(word string) (Tag, bool) {
	container, tag, found := strings.Cut(word, ":")
	if !found || !labels.IsTag(tag) {
		return Tag{}, false
	}
	if repository, ok := strings.CutPrefix(container, Namespace); ok {
		return Tag{container, tag}, legal.MatchString(repository)
	}
	return Tag{Repository(container), tag}, labels.IsContainerName(container)
}

// Resolve finds the snapshot that word means: container:name, container:latest,
// container:ID, container@age, a container, which means its latest, a full ID, a
// unique prefix of one, or a name that is unique on the engine. It asks the engine for
// what can match only: listing every image takes seconds on a containerd image store.
func (cat *Catalog) Resolve(ctx context.Context, word string) (Snapshot, error) {
	if container, when, ok := strings.Cut(word, "@"); ok {
		return cat.asOf(ctx, word, container, when)
	}
	if ref, ok := parseReference(word); ok {
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
			latest, err = cat.latestOfContainer(callsCtx, word)
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return Snapshot{}, err
	}
	found, err := pick(word, candidates)
	switch {
	case latest == nil && cerrdefs.IsNotFound(err):
		return Snapshot{}, cat.nothingOf(ctx, word)
	case latest == nil || err == nil && found.ImageID == latest.ImageID:
		return found, err
	case cerrdefs.IsNotFound(err), err == nil && !found.hasTag(word): // the beginning of an ID gives way
		return *latest, nil
	}
	return Snapshot{}, ambiguous(word, append(matches(word, candidates), *latest))
}

// beginningWith finds the snapshots that have a tag which begins with word,
// newest first. Of each image the engine lists only the tags that match, so
// they are looked at one by one.
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
			if s, err := decodeImage(img); err == nil {
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
	return found, nil
}

// Lookup finds the snapshot behind one tag, which is what word means. An image
// that has the tag but belongs to another container is not found there.
func (cat *Catalog) Lookup(ctx context.Context, word string, ref Tag) (Snapshot, error) {
	found, err := cat.docker.ImageInspect(ctx, ref.String())
	if cerrdefs.IsNotFound(err) {
		return Snapshot{}, &NotFoundError{Word: word}
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("inspect image %s: %w", ref, err)
	}
	s, err := decodeImage(found)
	if errors.Is(err, labels.ErrAbsent) || err == nil && !slices.Contains(s.Refs, ref.String()) {
		return Snapshot{}, &NotFoundError{Word: word} // an image of the user's own, or one that was built FROM a snapshot
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("read snapshot %s: %w", ref, err)
	}
	return s, nil
}

func decodeImage(found image.InspectResponse) (Snapshot, error) {
	if found.Config == nil {
		return Snapshot{}, labels.ErrAbsent
	}
	return decode(found.ID, found.RepoTags, found.Config.Labels)
}

// pick finds the one snapshot of all that word means.
func pick(word string, all []Snapshot) (Snapshot, error) {
	switch found := matches(word, all); len(found) {
	case 0:
		return Snapshot{}, &NotFoundError{Word: word}
	case 1:
		return found[0], nil
	default:
		return Snapshot{}, ambiguous(word, found)
	}
}

// matches are the snapshots that have word for a tag; if none has, those whose ID begins so.
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

func ambiguous(word string, found []Snapshot) error {
	candidates := make([]string, len(found))
	for i, s := range found {
		candidates[i] = s.word(string(s.ID))
		if s.Name != "" {
			candidates[i] += " (" + s.Name + ")"
		}
	}
	return &AmbiguousError{Word: word, Candidates: candidates}
}

// word is how people name the snapshot by one of its tags.
func (s Snapshot) word(tag string) string { return s.Container.Name + ":" + tag }

// hasTag tells whether one of the snapshot's tags is that one.
func (s Snapshot) hasTag(tag string) bool {
	return slices.ContainsFunc(s.Refs, func(ref string) bool { return strings.HasSuffix(ref, ":"+tag) })
}

// decode makes a snapshot of an image's labels, unless the image only inherited
// them: then it lacks the ID tag. A name that is no tag of the image is not, or no
// more, the snapshot's.
func decode(imageID string, refs []string, imageLabels map[string]string) (Snapshot, error) {
	record, err := labels.Decode(imageLabels)
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Record: record, ImageID: imageID}
	repository := Repository(record.Container.Name)
	for _, ref := range refs {
		if strings.HasPrefix(ref, repository+":") {
			s.Refs = append(s.Refs, ref)
		}
	}
	slices.Sort(s.Refs)
	if !slices.Contains(s.Refs, s.Ref()) {
		return Snapshot{}, labels.ErrAbsent
	}
	if !s.hasTag(s.Name) {
		s.Name = ""
	}
	return s, nil
}

// RefOf is a reference that this program has made.
func RefOf(ref string) Tag {
	repository, tag, _ := strings.Cut(ref, ":")
	return Tag{repository, tag}
}
