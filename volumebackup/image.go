package volumebackup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/workerimage"
)

// workerImages knows which images of an engine are those of workers.
type workerImages struct {
	docker Docker

	finding sync.Mutex
	found   string // ID of the image for new workers, once it has been looked for

	judging sync.Mutex
	judged  map[string]bool // by ID of an image: it is one of a worker
}

// ensure returns the ID of the worker's image, and loads the image into the engine if it is not there yet. The name
// only helps to find the image: ensure uses what has that name only if its content is ours.
func (w *workerImages) ensure(ctx context.Context, tell func(string)) (string, error) {
	w.finding.Lock()
	defer w.finding.Unlock()
	if w.found != "" {
		return w.found, nil
	}
	own, id, err := w.find(ctx)
	if err != nil {
		return "", err
	}
	if !own.HasID(id) {
		if id != "" {
			tell(fmt.Sprintf("image %s is not the worker of this program: it is not used, and loses that name", own.Ref()))
		}
		if id, err = w.load(ctx, own); err != nil {
			return "", fmt.Errorf("load image %s: %w", own.Ref(), err)
		}
		w.removeOthers(ctx, own)
	}
	w.found = id
	return id, nil
}

// prepare looks for the image before a worker needs it. If that fails, ensure tries again.
func (w *workerImages) prepare(ctx context.Context) {
	w.finding.Lock()
	defer w.finding.Unlock()
	if w.found != "" {
		return
	}
	if image, id, err := w.find(ctx); err == nil && image.HasID(id) {
		w.found = id
	}
}

func (w *workerImages) forget() {
	w.finding.Lock()
	defer w.finding.Unlock()
	w.found = ""
}

// find finds out which image the engine needs, and the ID of what it has under
// the name of that image.
func (w *workerImages) find(ctx context.Context) (image workerimage.Image, id string, err error) {
	hashAhead()
	engine, err := w.docker.ServerVersion(ctx)
	if err != nil {
		return image, "", fmt.Errorf("ask for the engine's architecture: %w", err)
	}
	if image, err = imageFor(engine.Os, engine.Arch); err != nil {
		return image, "", err
	}
	id, err = w.idOf(ctx, image.Ref())
	return image, id, err
}

// idOf is the ID of an image; none if there is no such image.
func (w *workerImages) idOf(ctx context.Context, ref string) (string, error) {
	found, err := w.docker.ImageInspect(ctx, ref)
	if cerrdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("inspect image %s: %w", ref, err)
	}
	return found.ID, nil
}

// load brings an image to the engine and returns the ID that it has there. It looks for the image by ID: another
// process may use the name meanwhile. Of two processes that load it at once, engine 29 refuses one, because the image exists.
func (w *workerImages) load(ctx context.Context, image workerimage.Image) (string, error) {
	content := image.Open()
	defer content.Close()
	answer, err := w.docker.ImageLoad(ctx, content, client.ImageLoadWithQuiet(true))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	_, failure := dockerop.LastStatus(answer.Body)
	if failure != nil && !strings.Contains(failure.Error(), "already exists") {
		return "", failure
	}
	for _, digest := range []string{image.Manifest, image.Config} {
		if id, err := w.idOf(ctx, digest); err != nil || image.HasID(id) {
			return id, err
		}
	}
	if failure != nil {
		return "", failure
	}
	return "", errors.New("the engine gave the image another ID than it must have")
}

// list lists the images of workers, of this build and of others.
func (w *workerImages) list(ctx context.Context) ([]image.Summary, error) {
	all, err := w.docker.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", workerimage.Repository))})
	if err != nil {
		return nil, fmt.Errorf("list images %s: %w", workerimage.Repository, err)
	}
	return slices.DeleteFunc(all, func(one image.Summary) bool {
		is, err := w.judge(ctx, one.ID)
		return err != nil || !is
	}), nil
}

// removalTime is how long a command waits at most until the images of other builds are removed.
const removalTime = 5 * time.Second

// removeOthers removes the images of other builds. The engine keeps those that a worker uses; the next build removes
// them. It does not wait for long: the engine looks at every container first, and cannot while docker cp writes into one,
// which may be waiting for what this command sends.
func (w *workerImages) removeOthers(ctx context.Context, current workerimage.Image) {
	ctx, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	all, err := w.list(ctx)
	if err != nil {
		return
	}
	for _, other := range all {
		if !current.HasID(other.ID) {
			_, _ = w.docker.ImageRemove(ctx, other.ID, image.RemoveOptions{PruneChildren: true})
		}
	}
}

// isWorker tells our workers from containers that only look like one. Whoever makes a container chooses its name, but
// labels may come with the image. So the image must be of this build, or, if it is of another build, have no labels
// to give.
func (w *workerImages) isWorker(ctx context.Context, c container.Summary) (bool, error) {
	if _, labelled := c.Labels[LabelPurpose]; !labelled {
		return false, nil
	}
	if !slices.ContainsFunc(c.Names, func(name string) bool { return strings.HasPrefix(name, "/"+namePrefix) }) {
		return false, nil
	}
	return w.judge(ctx, c.ImageID)
}

// judge tells whether an image is that of a worker, of this build or another.
func (w *workerImages) judge(ctx context.Context, imageID string) (bool, error) {
	w.judging.Lock()
	defer w.judging.Unlock()
	if is, known := w.judged[imageID]; known {
		return is, nil
	}
	is := isOfThisBuild(imageID)
	if !is {
		found, err := w.docker.ImageInspect(ctx, imageID)
		if err != nil && !cerrdefs.IsNotFound(err) {
			return false, fmt.Errorf("inspect image %s: %w", imageID, err)
		}
		is = err == nil && found.Config != nil && len(found.RootFS.Layers) == 1 && isPlain(found.Config)
	}
	if w.judged == nil {
		w.judged = map[string]bool{}
	}
	w.judged[imageID] = is
	return is, nil
}

// isPlain tells whether a configuration has only what to run and our version, and nothing in any other field.
func isPlain(config any) bool {
	encoded, err := json.Marshal(config)
	if err != nil {
		return false
	}
	var fields map[string]any
	var own struct {
		Entrypoint []string
		Labels     map[string]string
	}
	if json.Unmarshal(encoded, &fields) != nil || json.Unmarshal(encoded, &own) != nil {
		return false
	}
	for name, value := range fields {
		if name != "Entrypoint" && name != "Labels" && !isEmpty(value) {
			return false
		}
	}
	return slices.Equal(own.Entrypoint, workerimage.Entrypoint()) && maps.Equal(own.Labels, workerimage.Labels())
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == nil || value == "" || value == false || value == 0.0
}
