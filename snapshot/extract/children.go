package extract

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Child is an entry of a directory.
type Child struct {
	Name        string
	IsDirectory bool
}

// maxChildren is how many entries of a directory are listed.
const maxChildren = 1000

// Children lists what is in a directory that a source names: of a volume the entries, of the root filesystem only what
// leads to mounts. The engine could list the rest only together with all that is below it.
func (x *Extractor) Children(ctx context.Context, source Source) ([]Child, error) {
	found, err := source.find()
	if err != nil {
		return nil, err
	}
	var all []Child
	for _, m := range found.below {
		rest := strings.TrimPrefix(m.Destination, strings.TrimSuffix(found.place, "/")+"/")
		first, _, _ := strings.Cut(rest, "/")
		all = append(all, Child{Name: first, IsDirectory: true})
	}
	if found.mount != nil {
		err = x.archives.Entries(ctx, source.Snapshot, *found.mount, archives.Listed, func(e volumebackup.Entry) {
			at := string(e.Path)
			if at != "" && path.Join("/", path.Dir(at)) == path.Join("/", found.part.Path) && len(all) < maxChildren {
				all = append(all, Child{Name: path.Base(at), IsDirectory: e.Kind == "d"})
			}
		})
	}
	slices.SortFunc(all, func(a, b Child) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b Child) bool { return a.Name == b.Name }), err
}
