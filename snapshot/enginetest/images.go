package enginetest

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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

// FakeImage is an image of a [Docker].
type FakeImage struct {
	ID, Parent string
	Tags       []string // as people write them
	Config     *container.Config
	Comment    string
	Layers     []string
	Files      string
	created    time.Time
	Arch       string // empty: amd64
}

// AddImage makes an image without a parent.
func (f *Docker) AddImage(tag string, config *container.Config) *FakeImage {
	img := &FakeImage{ID: "sha256:" + f.NewID(), Config: config, Layers: []string{f.NewID()}, Files: "files of " + tag, created: f.Clock}
	if tag != "" {
		img.Tags = []string{tag}
	}
	f.Images = append(f.Images, img)
	return img
}

// FindImage returns the image with that tag, ID or beginning of an ID, or nil.
func (f *Docker) FindImage(word string) *FakeImage {
	tag := familiar(word)
	for _, img := range f.Images {
		if img.ID == word || slices.Contains(img.Tags, tag) || f.isIDOf(word, img) {
			return img
		}
	}
	return nil
}

// isIDOf tells whether word is the ID of img, or the beginning of it.
func (f *Docker) isIDOf(word string, img *FakeImage) bool {
	digits := strings.TrimPrefix(word, "sha256:")
	return len(digits) >= 4 && strings.HasPrefix(img.ID, "sha256:"+digits)
}

func familiar(word string) string {
	ref, err := reference.ParseNormalizedNamed(word)
	if err != nil {
		return word
	}
	return reference.FamiliarString(reference.TagNameOnly(ref))
}

// withImage runs effect with the image that word names.
func (f *Docker) withImage(ctx context.Context, call, word string, effect func(*FakeImage) error) error {
	return f.do(ctx, call+" "+word, func() error {
		img := f.FindImage(word)
		if img == nil {
			return fmt.Errorf("no such image: %s: %w", word, cerrdefs.ErrNotFound)
		}
		return effect(img)
	})
}

// ImageInspect returns the image with all its tags.
func (f *Docker) ImageInspect(ctx context.Context, id string, _ ...client.ImageInspectOption) (found image.InspectResponse, err error) {
	err = f.withImage(ctx, "ImageInspect", id, func(img *FakeImage) error {
		found = image.InspectResponse{
			ID: img.ID, RepoTags: slices.Clone(img.Tags), Comment: img.Comment, Config: &dockerspec.DockerOCIImageConfig{},
			Os: "linux", Architecture: cmp.Or(img.Arch, "amd64"), RootFS: image.RootFS{Type: "layers", Layers: slices.Clone(img.Layers)},
			Created: img.created.Format(time.RFC3339Nano),
		}
		raw, err := json.Marshal(img.Config)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, found.Config)
	})
	return found, err
}

// ImageList filters by label, reference and dangling.
func (f *Docker) ImageList(ctx context.Context, options image.ListOptions) (list []image.Summary, err error) {
	err = f.do(ctx, "ImageList", func() error {
		patterns := options.Filters.Get("reference")
		for _, img := range f.Images {
			tags, err := matching(img.Tags, patterns)
			if err != nil {
				return err
			}
			hidden := len(img.Tags) == 0 && f.hasChildren(img)
			dangling := options.Filters.ExactMatch("dangling", "true") && options.Filters.Contains("dangling")
			switch {
			case hidden, len(patterns) > 0 && len(tags) == 0, dangling && len(img.Tags) > 0:
				continue
			case !options.Filters.MatchKVList("label", img.Config.Labels):
				continue
			}
			list = append(list, Clone(image.Summary{
				ID: img.ID, ParentID: img.Parent, RepoTags: tags, Labels: img.Config.Labels, Created: img.created.Unix(), Size: int64(len(img.Files)),
			}))
		}
		return nil
	})
	return list, err
}

// matching returns the tags that match one of the patterns. An engine that is asked for references
// shows no other tags, not even of the same image.
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

func (f *Docker) hasChildren(img *FakeImage) bool {
	return slices.ContainsFunc(f.Images, func(other *FakeImage) bool { return other.Parent == img.ID })
}

// descends tells whether an image is ancestor, or was made from it.
func (f *Docker) descends(id, ancestor string) bool {
	for id != "" && id != ancestor {
		img := f.FindImage(id)
		if img == nil {
			return false
		}
		id = img.Parent
	}
	return id == ancestor
}

// ImageTag moves the tag if another image has it.
func (f *Docker) ImageTag(ctx context.Context, source, target string) error {
	return f.withImage(ctx, "ImageTag", source, func(img *FakeImage) error {
		if _, err := reference.ParseNormalizedNamed(target); err != nil {
			return fmt.Errorf("invalid reference %s: %w", target, cerrdefs.ErrInvalidArgument)
		}
		f.untag(familiar(target))
		img.Tags = append(img.Tags, familiar(target))
		return nil
	})
}

func (f *Docker) untag(tag string) {
	for _, img := range f.Images {
		img.Tags = slices.DeleteFunc(img.Tags, func(other string) bool { return other == tag })
	}
}

// ImageRemove removes a tag, and with the last tag the image. If word is an ID, it removes the
// image with all its tags.
func (f *Docker) ImageRemove(ctx context.Context, word string, options image.RemoveOptions) (gone []image.DeleteResponse, err error) {
	err = f.withImage(ctx, "ImageRemove", word, func(img *FakeImage) error {
		byID := f.isIDOf(word, img)
		users := f.users(img)
		if byID && len(img.Tags) > 1 && !options.Force {
			return fmt.Errorf("conflict: unable to delete %s (must be forced): image is referenced in multiple repositories: %w", word, cerrdefs.ErrConflict)
		}
		if len(users) > 0 && !options.Force && (byID || len(img.Tags) == 1) {
			return fmt.Errorf("conflict: unable to remove %s: container %s is using it: %w", word, users[0].ID, cerrdefs.ErrConflict)
		}
		running := slices.ContainsFunc(users, func(c *FakeContainer) bool { return c.State == "running" || c.State == "paused" })
		if byID && (running || f.hasChildren(img)) {
			return fmt.Errorf("conflict: unable to delete %s (cannot be forced): %w", word, cerrdefs.ErrConflict)
		}
		if !byID {
			f.untag(familiar(word))
			gone = append(gone, image.DeleteResponse{Untagged: familiar(word)})
			if len(img.Tags) > 0 || running || f.hasChildren(img) {
				return nil
			}
		}
		gone = append(gone, f.deleteImage(img, options.PruneChildren)...)
		return nil
	})
	return gone, err
}

func (f *Docker) users(img *FakeImage) []*FakeContainer {
	var users []*FakeContainer
	for _, c := range f.Containers {
		if c.Image == img.ID {
			users = append(users, c)
		}
	}
	return users
}

// deleteImage removes an image and, with prune, the parents that have no tag and no other use.
func (f *Docker) deleteImage(img *FakeImage, prune bool) []image.DeleteResponse {
	f.Images = slices.DeleteFunc(f.Images, func(other *FakeImage) bool { return other == img })
	gone := []image.DeleteResponse{{Deleted: img.ID}}
	parent := f.FindImage(img.Parent)
	if prune && parent != nil && len(parent.Tags) == 0 && len(f.users(parent)) == 0 && !f.hasChildren(parent) {
		gone = append(gone, f.deleteImage(parent, prune)...)
	}
	return gone
}

// ImageImport makes an image of one layer.
func (f *Docker) ImageImport(ctx context.Context, source image.ImportSource, ref string, options image.ImportOptions) (answer io.ReadCloser, err error) {
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
		img := f.AddImage(ref, config)
		img.Files, img.Comment = string(files), options.Message
		_, img.Arch, _ = strings.Cut(options.Platform, "/")
		answer = io.NopCloser(strings.NewReader(fmt.Sprintf("{\"status\":%q}\r\n", img.ID)))
		return nil
	})
	return answer, err
}

// ImageLoad makes the image that an archive of docker save describes.
func (f *Docker) ImageLoad(ctx context.Context, content io.Reader, _ ...client.ImageLoadOption) (answer image.LoadResponse, err error) {
	err = f.do(ctx, "ImageLoad", func() error {
		members, err := readArchive(content)
		if err != nil {
			return err
		}
		var saved []struct {
			Config   string
			RepoTags []string
		}
		if err := json.Unmarshal(members["manifest.json"], &saved); err != nil || len(saved) != 1 {
			return fmt.Errorf("invalid archive: %w", cerrdefs.ErrInvalidArgument)
		}
		var described struct {
			Architecture string           `json:"architecture"`
			Config       container.Config `json:"config"`
			History      []struct {
				Comment string `json:"comment"`
			} `json:"history"`
		}
		if err := json.Unmarshal(members[saved[0].Config], &described); err != nil {
			return err
		}
		id := "sha256:" + strings.TrimPrefix(saved[0].Config, "blobs/sha256/")
		for _, tag := range saved[0].RepoTags {
			f.untag(familiar(tag))
		}
		img := f.FindImage(id)
		if img == nil {
			img = f.AddImage("", &described.Config)
			img.ID, img.Layers, img.Arch = id, nil, described.Architecture
			if n := len(described.History); n > 0 {
				img.Comment = described.History[n-1].Comment
			}
		}
		for _, tag := range saved[0].RepoTags {
			img.Tags = append(img.Tags, familiar(tag))
		}
		answer.Body = io.NopCloser(strings.NewReader(`{"stream":"Loaded image"}`))
		return nil
	})
	return answer, err
}

// readArchive returns the files of a tar by their names.
func readArchive(content io.Reader) (map[string][]byte, error) {
	members := map[string][]byte{}
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return members, nil
		}
		if err != nil {
			return nil, err
		}
		if members[header.Name], err = io.ReadAll(files); err != nil {
			return nil, err
		}
	}
}

// mergeConfig completes given with what is below it: the image of a create call, or the container
// of a commit.
func mergeConfig(given, below *container.Config) {
	if given.User == "" {
		given.User = below.User
	}
	if given.WorkingDir == "" {
		given.WorkingDir = below.WorkingDir
	}
	if given.StopSignal == "" {
		given.StopSignal = below.StopSignal
	}
	mergeHealth(given, below.Healthcheck)
	if len(given.Entrypoint) == 0 && len(given.Cmd) == 0 {
		given.Cmd = below.Cmd
	}
	if given.Entrypoint == nil {
		given.Entrypoint = below.Entrypoint
	}
	given.ExposedPorts = union(below.ExposedPorts, given.ExposedPorts)
	given.Volumes = union(below.Volumes, given.Volumes)
	given.Labels = union(below.Labels, given.Labels)
	for _, entry := range below.Env {
		key, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(given.Env, func(e string) bool { return e == key || strings.HasPrefix(e, key+"=") }) {
			given.Env = append(given.Env, entry)
		}
	}
}

// mergeHealth completes each field of the healthcheck separately.
func mergeHealth(given *container.Config, below *dockerspec.HealthcheckConfig) {
	h := given.Healthcheck
	if h == nil || below == nil {
		given.Healthcheck = cmp.Or(h, below)
		return
	}
	if len(h.Test) == 0 {
		h.Test = below.Test
	}
	h.Interval, h.Timeout = cmp.Or(h.Interval, below.Interval), cmp.Or(h.Timeout, below.Timeout)
	h.StartPeriod, h.StartInterval = cmp.Or(h.StartPeriod, below.StartPeriod), cmp.Or(h.StartInterval, below.StartInterval)
	h.Retries = cmp.Or(h.Retries, below.Retries)
}

// union returns both maps as one. Where both have a key, over wins.
func union[M ~map[K]V, K comparable, V any](under, over M) M {
	if len(under)+len(over) == 0 {
		return over
	}
	all := M{}
	maps.Copy(all, under)
	maps.Copy(all, over)
	return all
}
