package dockerop

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
)

// whiteoutPrefix begins the names that mean a removal in the layer of an image.
const whiteoutPrefix = ".wh."

// Whiteouts returns the paths in a container's writable layer whose names mean a removal in an image. A commit loses such a file, and
// removes the file of the image that has the rest of the name.
func (e *Engine) Whiteouts(ctx context.Context, id string) ([]string, error) {
	changes, err := e.ContainerDiff(ctx, id)
	if err != nil {
		return nil, Describe(AsNoContainer(err), "list the changed files of container "+id)
	}
	var paths []string
	for _, c := range changes {
		if c.Kind != container.ChangeDelete && strings.HasPrefix(path.Base(c.Path), whiteoutPrefix) {
			paths = append(paths, c.Path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// DescribeWhiteout says what a commit does to a file whose name means a removal.
func DescribeWhiteout(file string) string {
	folder, name := path.Split(file)
	lost := file
	if hidden := strings.TrimPrefix(name, whiteoutPrefix); hidden != "" {
		lost += ", and removes " + folder + hidden
	}
	return "the engine's commit loses " + lost + ": names that begin with " + whiteoutPrefix + " mean a removal in an image"
}
