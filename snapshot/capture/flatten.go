package capture

import (
	"context"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// maxLayers is how many layers a snapshot's image may have before it is made
// into one. overlay2 refuses the 126th; the rest is room for the user's own
// builds on top. The containerd image store has no such limit, but a long chain
// costs it time too.
const maxLayers = 100

// flatten makes an image with the same files, in one layer, and the same
// configuration. The container is not frozen meanwhile: what is read is the
// image that was committed. The data passes through the client; the engine has
// no other way.
func (cr *Capturer) flatten(ctx context.Context, imageID string, id labels.ID, p plan.Progress) (flat string, err error) {
	p.Status("flatten", "making one layer of many")
	layered, err := cr.docker.ImageInspect(ctx, imageID)
	if err != nil {
		return "", fmt.Errorf("inspect image %s: %w", imageID, err)
	}
	config := imageDefaults(*layered.Config)
	config.Labels = layered.Config.Labels
	if config.Entrypoint == nil {
		config.Entrypoint = []string{} // or commit would take the scratch container's
	}
	var u dockerop.Rollback
	defer func() { u.Unless(ctx, &err) }()
	base, err := cr.importFlat(ctx, layered, id, config, &u, p)
	if err != nil {
		return "", err
	}
	err = cr.withScratch(ctx, base, string(id), nil, func(scratch string) error {
		made, err := cr.docker.Commit(ctx, scratch, container.CommitOptions{Config: config, Comment: catalog.CommitComment(id)})
		if err != nil {
			return err
		}
		u.Add(func(ctx context.Context) error { return cr.docker.RemoveImage(ctx, made) })
		flat = made
		return nil
	})
	if err != nil {
		return "", err
	}
	// The committed image stands on the imported one, which has no name of its
	// own: the overlay2 store keeps it while it is needed and says so, the
	// containerd store has copied what it needs.
	if err := cr.docker.RemoveImage(ctx, base); err != nil && !cerrdefs.IsConflict(err) {
		return "", fmt.Errorf("remove imported image: %w", err)
	}
	return flat, nil
}

// importFlat reads the files of an image and makes a one-layer image of them. It
// is marked as the snapshot's, so that it is swept if nobody removes it. It is for
// the same platform, save that engines 20.10 take their own for every import, and
// that commit keeps no variant.
func (cr *Capturer) importFlat(ctx context.Context, layered image.InspectResponse, id labels.ID, config *container.Config, u *dockerop.Rollback, p plan.Progress) (base string, err error) {
	err = cr.withScratch(ctx, layered.ID, string(id), config.Volumes, func(scratch string) error {
		files, err := cr.docker.ContainerExport(ctx, scratch)
		if err != nil {
			return fmt.Errorf("export files: %w", err)
		}
		defer files.Close()
		counted := &countingReader{Reader: files, progress: p}
		answer, err := cr.docker.ImageImport(ctx, image.ImportSource{Source: counted, SourceName: "-"}, "", image.ImportOptions{
			Message: catalog.CommitComment(id), Platform: dockerop.ImagePlatform(layered),
			Changes: []string{"LABEL " + labels.KeyVersion + "=" + labels.SchemaVersion, "LABEL " + labels.KeyID + "=" + string(id)},
		})
		if err != nil {
			return fmt.Errorf("import files: %w", dockerop.AsFull(err))
		}
		defer answer.Close()
		made, err := dockerop.LastStatus(answer)
		if err == nil && made == "" {
			err = errors.New("the engine's answer names no image")
		}
		if err != nil {
			return fmt.Errorf("import files: %w", dockerop.AsFull(err))
		}
		u.Add(func(ctx context.Context) error { return cr.docker.RemoveImage(ctx, made) })
		base = made
		return nil
	})
	return base, err
}

// withScratch runs f with a container of the image that never starts. Its name ends in name.
func (cr *Capturer) withScratch(ctx context.Context, imageID, name string, volumes map[string]struct{}, f func(scratch string) error) error {
	own := map[string]string{labels.KeyVersion: labels.SchemaVersion}
	return cr.docker.WithScratch(ctx, catalog.ScratchPrefix+name, imageID, own, volumes, f)
}

// countingReader reports how much has been read.
type countingReader struct {
	io.Reader
	progress plan.Progress
	total    int64
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.total += int64(n)
	if r.progress != nil {
		r.progress(plan.Event{Phase: "flatten", Text: "making one layer of many", Current: r.total})
	}
	return n, err
}
