package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
)

// fakeImage is an image of a [fakeDocker].
type fakeImage struct {
	id, parent string
	tags       []string // as people write them
	config     *container.Config
	comment    string
	layers     []string
	files      string
	created    time.Time
	arch       string // empty: amd64
}

// addImage makes an image out of nothing.
func (f *fakeDocker) addImage(tag string, config *container.Config) *fakeImage {
	img := &fakeImage{id: "sha256:" + f.newID(), config: config, layers: []string{f.newID()}, files: "files of " + tag, created: f.clock}
	if tag != "" {
		img.tags = []string{tag}
	}
	f.images = append(f.images, img)
	return img
}

// findImage finds an image by one of its tags, by its ID or a prefix of it.
func (f *fakeDocker) findImage(word string) *fakeImage {
	tag := familiar(word)
	for _, img := range f.images {
		if img.id == word || slices.Contains(img.tags, tag) || f.isIDOf(word, img) {
			return img
		}
	}
	return nil
}

// isIDOf tells whether word is the ID of img or begins it.
func (f *fakeDocker) isIDOf(word string, img *fakeImage) bool {
	digits := strings.TrimPrefix(word, "sha256:")
	return len(digits) >= 4 && strings.HasPrefix(img.id, "sha256:"+digits)
}

func familiar(word string) string {
	ref, err := reference.ParseNormalizedNamed(word)
	if err != nil {
		return word
	}
	return reference.FamiliarString(reference.TagNameOnly(ref))
}

// withImage runs effect with the image that word names.
func (f *fakeDocker) withImage(ctx context.Context, call, word string, effect func(*fakeImage) error) error {
	return f.do(ctx, call+" "+word, func() error {
		img := f.findImage(word)
		if img == nil {
			return fmt.Errorf("no such image: %s: %w", word, cerrdefs.ErrNotFound)
		}
		return effect(img)
	})
}

func (f *fakeDocker) ImageInspect(ctx context.Context, id string, _ ...client.ImageInspectOption) (found image.InspectResponse, err error) {
	err = f.withImage(ctx, "ImageInspect", id, func(img *fakeImage) error {
		found = image.InspectResponse{
			ID: img.id, RepoTags: slices.Clone(img.tags), Comment: img.comment, Config: &dockerspec.DockerOCIImageConfig{},
			Os: "linux", Architecture: cmp.Or(img.arch, "amd64"), RootFS: image.RootFS{Type: "layers", Layers: slices.Clone(img.layers)},
			Created: img.created.Format(time.RFC3339Nano),
		}
		raw, err := json.Marshal(img.config)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, found.Config)
	})
	return found, err
}

func (f *fakeDocker) ImageList(ctx context.Context, options image.ListOptions) (list []image.Summary, err error) {
	err = f.do(ctx, "ImageList", func() error {
		patterns := options.Filters.Get("reference")
		for _, img := range f.images {
			tags, err := matching(img.tags, patterns)
			if err != nil {
				return err
			}
			hidden := len(img.tags) == 0 && f.hasChildren(img)
			dangling := options.Filters.ExactMatch("dangling", "true") && options.Filters.Contains("dangling")
			switch {
			case hidden, len(patterns) > 0 && len(tags) == 0, dangling && len(img.tags) > 0:
				continue
			case !options.Filters.MatchKVList("label", img.config.Labels):
				continue
			}
			list = append(list, clone(image.Summary{
				ID: img.id, ParentID: img.parent, RepoTags: tags, Labels: img.config.Labels, Created: img.created.Unix(), Size: int64(len(img.files)),
			}))
		}
		return nil
	})
	return list, err
}

// matching are the tags that match one of the patterns: an engine that is asked
// for references shows no others, not even of the same image.
func matching(tags, patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return slices.Clone(tags), nil
	}
	var found []string
	for _, tag := range tags {
		ref, err := reference.ParseNormalizedNamed(tag)
		if err != nil {
			return nil, err
		}
		for _, pattern := range patterns {
			ok, err := reference.FamiliarMatch(pattern, ref)
			if err != nil {
				return nil, fmt.Errorf("invalid filter 'reference=%s': %w", pattern, cerrdefs.ErrInvalidArgument)
			}
			if ok {
				found = append(found, tag)
				break
			}
		}
	}
	return found, nil
}

func (f *fakeDocker) hasChildren(img *fakeImage) bool {
	return slices.ContainsFunc(f.images, func(other *fakeImage) bool { return other.parent == img.id })
}

// descends tells whether an image is ancestor, or stands on it.
func (f *fakeDocker) descends(id, ancestor string) bool {
	for id != "" && id != ancestor {
		img := f.findImage(id)
		if img == nil {
			return false
		}
		id = img.parent
	}
	return id == ancestor
}

func (f *fakeDocker) ImageTag(ctx context.Context, source, target string) error {
	return f.withImage(ctx, "ImageTag", source, func(img *fakeImage) error {
		if _, err := reference.ParseNormalizedNamed(target); err != nil {
			return fmt.Errorf("invalid reference %s: %w", target, cerrdefs.ErrInvalidArgument)
		}
		f.untag(familiar(target))
		img.tags = append(img.tags, familiar(target))
		return nil
	})
}

func (f *fakeDocker) untag(tag string) {
	for _, img := range f.images {
		img.tags = slices.DeleteFunc(img.tags, func(other string) bool { return other == tag })
	}
}

// ImageRemove removes a tag, and with the last of them the image; or the image
// with all its tags, if it is named by its ID.
func (f *fakeDocker) ImageRemove(ctx context.Context, word string, options image.RemoveOptions) (gone []image.DeleteResponse, err error) {
	err = f.withImage(ctx, "ImageRemove", word, func(img *fakeImage) error {
		byID := f.isIDOf(word, img)
		users := f.users(img)
		if byID && len(img.tags) > 1 && !options.Force {
			return fmt.Errorf("conflict: unable to delete %s (must be forced): image is referenced in multiple repositories: %w", word, cerrdefs.ErrConflict)
		}
		if len(users) > 0 && !options.Force && (byID || len(img.tags) == 1) {
			return fmt.Errorf("conflict: unable to remove %s: container %s is using it: %w", word, users[0].id, cerrdefs.ErrConflict)
		}
		running := slices.ContainsFunc(users, func(c *fakeContainer) bool { return c.state == "running" || c.state == "paused" })
		if byID && (running || f.hasChildren(img)) {
			return fmt.Errorf("conflict: unable to delete %s (cannot be forced): %w", word, cerrdefs.ErrConflict)
		}
		if !byID {
			f.untag(familiar(word))
			gone = append(gone, image.DeleteResponse{Untagged: familiar(word)})
			if len(img.tags) > 0 || running || f.hasChildren(img) {
				return nil
			}
		}
		gone = append(gone, f.deleteImage(img, options.PruneChildren)...)
		return nil
	})
	return gone, err
}

func (f *fakeDocker) users(img *fakeImage) []*fakeContainer {
	var users []*fakeContainer
	for _, c := range f.containers {
		if c.image == img.id {
			users = append(users, c)
		}
	}
	return users
}

// deleteImage also deletes the parents that have no name and no other use.
func (f *fakeDocker) deleteImage(img *fakeImage, prune bool) []image.DeleteResponse {
	f.images = slices.DeleteFunc(f.images, func(other *fakeImage) bool { return other == img })
	gone := []image.DeleteResponse{{Deleted: img.id}}
	parent := f.findImage(img.parent)
	if prune && parent != nil && len(parent.tags) == 0 && len(f.users(parent)) == 0 && !f.hasChildren(parent) {
		gone = append(gone, f.deleteImage(parent, prune)...)
	}
	return gone
}

func (f *fakeDocker) ImageImport(ctx context.Context, source image.ImportSource, ref string, options image.ImportOptions) (answer io.ReadCloser, err error) {
	err = f.do(ctx, "ImageImport", func() error {
		files, err := io.ReadAll(source.Source)
		if err != nil {
			return err
		}
		config := &container.Config{Labels: map[string]string{}}
		for _, change := range options.Changes {
			key, value, ok := strings.Cut(strings.TrimPrefix(change, "LABEL "), "=")
			if !ok {
				return fmt.Errorf("unknown change %q: %w", change, cerrdefs.ErrInvalidArgument)
			}
			config.Labels[key] = value
		}
		img := f.addImage(ref, config)
		img.files, img.comment = string(files), options.Message
		_, img.arch, _ = strings.Cut(options.Platform, "/")
		answer = io.NopCloser(strings.NewReader(fmt.Sprintf("{\"status\":%q}\r\n", img.id)))
		return nil
	})
	return answer, err
}
