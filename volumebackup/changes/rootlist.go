package changes

import (
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// plainMode is that of directories that nobody has mentioned.
const plainMode = 0o755

// ofEngine is what an engine makes in every container, to mount something there.
var ofEngine = []string{".dockerenv", "dev/console", "etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf"}

// IsOfEngine tells whether an engine makes an entry in every container, to mount something there. name is a clean path
// from the root, without a slash at its beginning.
func IsOfEngine(name string) bool { return slices.Contains(ofEngine, name) }

// RootList collects the entries of a root filesystem, in any order.
type RootList struct {
	entries map[string]*manifest.Entry
	links   []link
}

// link is a further name of a file.
type link struct{ path, to string }

// NewRootList returns a list with nothing but the root itself.
func NewRootList() *RootList {
	return &RootList{entries: map[string]*manifest.Entry{"": {Kind: manifest.Directory, Attributes: manifest.Attributes{Mode: plainMode}}}}
}

// maxImageTime is the last second that an image can hold: engines count nanoseconds in 64 bits.
const maxImageTime = math.MaxInt64 / int64(time.Second)

// Add takes an entry by its first name. It replaces one of the same path. An engine that commits a file dated before 1970 or after
// 2262 dates it 1970, so a container's file counts as dated like that, too.
func (l *RootList) Add(e *manifest.Entry) {
	if s := e.Modified.Sec; s < 0 || s > maxImageTime {
		e.Modified = manifest.Timestamp{}
	}
	l.entries[e.Path] = e
}

// Remove takes an entry away again.
func (l *RootList) Remove(path string) { delete(l.entries, path) }

// Link takes a further name of a file. Without that file it is dropped.
func (l *RootList) Link(path, to string) { l.links = append(l.links, link{path, to}) }

// Len is how many entries were added.
func (l *RootList) Len() int { return len(l.entries) + len(l.links) }

// Write writes the manifest of what was collected.
func (l *RootList) Write(out io.Writer) error {
	l.addLinks()
	l.addParents()
	all := make([]*manifest.Entry, 0, len(l.entries))
	for _, e := range l.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *manifest.Entry) int { return manifest.Compare(a.Path, b.Path) })
	w, err := manifest.NewWriter(out, manifest.NewPackTable())
	if err != nil {
		return err
	}
	for _, e := range all {
		if err := w.Append(e); err != nil {
			return err
		}
	}
	_, err = w.Finish()
	return err
}

// addLinks gives each file with several names to the first of them.
func (l *RootList) addLinks() {
	names := map[*manifest.Entry][]string{}
	for _, further := range l.links {
		if file := l.entries[further.to]; file != nil && file.Kind != manifest.Directory {
			l.entries[further.path] = file
			names[file] = append(names[file], further.path)
		}
	}
	for file, further := range names {
		all := append(further, file.Path)
		slices.SortFunc(all, manifest.Compare)
		all = slices.Compact(all)
		file.Path, file.Shared = all[0], len(all) > 1
		l.entries[all[0]] = file
		for _, name := range all[1:] {
			l.entries[name] = &manifest.Entry{Path: name, Kind: manifest.HardLink, Target: all[0]}
		}
	}
}

// addParents adds directories that the tar has not mentioned.
func (l *RootList) addParents() {
	for _, e := range slices.Collect(maps.Values(l.entries)) {
		for parent := manifest.Parent(e.Path); l.entries[parent] == nil; parent = manifest.Parent(parent) {
			l.entries[parent] = &manifest.Entry{Path: parent, Kind: manifest.Directory, Attributes: manifest.Attributes{Mode: plainMode}}
		}
	}
}
