package catalog

import (
	"context"
	"fmt"
	"io"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// uniqueBytes make the names of scratch containers differ.
const uniqueBytes = 4

// WithScratch runs f with a container of an image that never starts, and removes it afterwards. word
// says in its name what it is for.
func (cat *Catalog) WithScratch(ctx context.Context, word, image string, f func(scratch string) error) error {
	found, err := cat.docker.ImageInspect(ctx, image)
	if err != nil {
		return fmt.Errorf("inspect image %s: %w", image, err)
	}
	unique := make([]byte, uniqueBytes)
	if _, err := io.ReadFull(cat.random, unique); err != nil {
		return fmt.Errorf("read random bytes: %w", err)
	}
	var volumes map[string]struct{}
	if found.Config != nil {
		volumes = found.Config.Volumes
	}
	name := fmt.Sprintf("%s%s-%x", ScratchPrefix, word, unique)
	return cat.docker.WithScratch(ctx, name, image, map[string]string{labels.KeyVersion: labels.SchemaVersion}, volumes, f)
}
