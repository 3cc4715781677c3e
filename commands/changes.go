package commands

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// changeList prints changes as they come, or sums of them.
type changeList struct {
	out     io.Writer
	printer printer
	files   bool   // print each change
	stat    bool   // print a sum for each directory
	before  func() // called before the first line
	err     error  // why no more is printed

	volumes     []changeCount // in the order in which they come
	directories []changeCount
	places      map[[2]string]int // of a directory in directories, by where its volume is mounted and its path
}

// fileChange is one change, as --format shows it.
type fileChange struct {
	Volume      string       `json:"volume"`
	Destination string       `json:"destination"`
	Path        string       `json:"path"`
	ChangeType  changes.Type `json:"change_type"`
	SizeDelta   byteDelta    `json:"size_delta"`
}

// changeCount is how much changed in a volume, or in a directory of it.
type changeCount struct {
	Volume                    string    `json:"volume"`
	Destination               string    `json:"destination"`
	Path                      string    `json:"path"` // of the directory
	CreatedEntries            int64     `json:"created_entries"`
	ModifiedEntries           int64     `json:"modified_entries"`
	DeletedEntries            int64     `json:"deleted_entries"`
	PermissionsChangedEntries int64     `json:"permissions_changed_entries"`
	SizeDelta                 byteDelta `json:"size_delta"`
}

// byteDelta is by how many bytes something grew.
type byteDelta int64

func (b byteDelta) String() string {
	if b < 0 {
		return "-" + units.HumanSize(float64(-b))
	}
	return "+" + units.HumanSize(float64(b))
}

func newFileChange(c diff.Change) fileChange {
	return fileChange{Volume: c.Volume, Destination: c.Destination, Path: pathText(c.Path), ChangeType: c.Type, SizeDelta: byteDelta(c.SizeDelta)}
}

// inContainer is the path of what changed, as the container sees it.
func inContainer(c diff.Change) string { return path.Join(c.Destination, string(c.Path)) }

// changeLetters are those of docker diff, and one for what it does not tell apart.
var changeLetters = map[changes.Type]string{
	changes.Created: "A", changes.Modified: "C", changes.Deleted: "D", changes.PermissionsChanged: "M",
}

// add takes one change.
func (l *changeList) add(c diff.Change) {
	if l.err != nil {
		return
	}
	if last := len(l.volumes) - 1; last < 0 || l.volumes[last].Destination != c.Destination {
		l.volumes = append(l.volumes, changeCount{Volume: c.Volume, Destination: c.Destination})
	}
	l.volumes[len(l.volumes)-1].add(c)
	if l.stat {
		l.directory(c).add(c)
	}
	if !l.files {
		return
	}
	l.before()
	if l.printer.formats() {
		l.err = l.printer.print(l.out, "", newFileChange(c))
		return
	}
	l.err = writeLine(l.out, changeLetters[c.Type]+" "+quoted(inContainer(c)))
}

// directory is the sum for the directory that holds what changed.
func (l *changeList) directory(c diff.Change) *changeCount {
	name := strings.TrimPrefix(path.Dir("/"+string(c.Path)), "/")
	key := [2]string{c.Destination, name}
	at, known := l.places[key]
	if !known {
		if l.places == nil {
			l.places = map[[2]string]int{}
		}
		at = len(l.directories)
		l.places[key] = at
		l.directories = append(l.directories, changeCount{Volume: c.Volume, Destination: c.Destination, Path: name})
	}
	return &l.directories[at]
}

func (n *changeCount) add(c diff.Change) {
	switch c.Type {
	case changes.Created:
		n.CreatedEntries++
	case changes.Modified:
		n.ModifiedEntries++
	case changes.Deleted:
		n.DeletedEntries++
	case changes.PermissionsChanged:
		n.PermissionsChangedEntries++
	}
	n.SizeDelta += byteDelta(c.SizeDelta)
}

// finish prints the sums.
func (l *changeList) finish() error {
	for _, n := range l.directories {
		if err := l.printer.print(l.out, n.line(quoted(path.Join(n.Destination, n.Path))), n); err != nil {
			return err
		}
	}
	if l.printer.formats() {
		return nil
	}
	if len(l.volumes) == 0 {
		return writeLine(l.out, "no changes")
	}
	for _, n := range l.volumes {
		if err := writeLine(l.out, n.summary()); err != nil {
			return err
		}
	}
	return nil
}

// summary says how much changed in a volume.
func (n changeCount) summary() string {
	if n.Volume == diff.Rootfs && n.Destination == "/" {
		return n.line(n.Volume)
	}
	return n.line(fmt.Sprintf("%s (%s)", n.Volume, n.Destination))
}

func (n changeCount) line(name string) string {
	return fmt.Sprintf("%s: %d created, %d modified, %d deleted, %d with other permissions, %s",
		name, n.CreatedEntries, n.ModifiedEntries, n.DeletedEntries, n.PermissionsChangedEntries, n.SizeDelta)
}
