package commands

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// changeList prints changes as they come, or sums of them, or keeps them for a report.
type changeList struct {
	out     io.Writer
	printer printer
	files   bool   // print each change
	stat    bool   // print a sum for each directory
	keep    bool   // print nothing, and keep each change
	before  func() // called before the first line
	err     error  // why no more is printed

	kept []fileChange

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

// changeReport is what changed, as a part of a result.
type changeReport struct {
	Counts []changeCount `json:"counts"` // one for each volume in which something changed
	List   []fileChange  `json:"list"`
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
	if l.keep {
		l.kept = append(l.kept, newFileChange(c))
		return
	}
	if !l.files {
		return
	}
	l.before()
	if l.printer.formats() {
		l.err = l.printer.print(l.out, "", newFileChange(c))
		return
	}
	l.err = writeLine(l.out, changeLetters[c.Type]+" "+quoted(c.InContainer()))
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

// report is what was kept. No list in it is nil, so JSON shows an empty one as [].
func (l *changeList) report() *changeReport {
	return &changeReport{Counts: append([]changeCount{}, l.volumes...), List: append([]fileChange{}, l.kept...)}
}

// fill has compare hand its changes to the list, and prints what the list prints. Progress is shown until the first line.
func (l *changeList) fill(d deps, v volumeOptions, o progressOptions, compare func(eng engine, p plan.Progress, visit func(diff.Change)) error) error {
	show, err := d.progress(o)
	if err != nil {
		return err
	}
	l.before = sync.OnceFunc(show.close)
	defer l.before()
	eng, err := d.engine(v)
	if err != nil {
		return err
	}
	if err := errors.Join(compare(eng, show.show, l.add), l.err); err != nil {
		return err
	}
	l.before()
	if l.keep {
		return nil
	}
	return l.finish()
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
