package commands

import (
	"cmp"
	"context"
	"encoding"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// runFiles lists the entries of a snapshot's volumes, or of one of them, or of the root filesystem.
func runFiles(ctx context.Context, d deps, o inspectOptions, args []string) error {
	if len(args) > 2 {
		return wrongArgument{errors.New("--files takes one snapshot, and at most one volume")}
	}
	if err := checkSnapshot(args[0]); err != nil {
		return err
	}
	eng, err := d.engine(o.volumes)
	if err != nil {
		return err
	}
	s, err := d.resolve(ctx, eng, args[0])
	if err != nil {
		return err
	}
	if len(args) == 2 && args[1] == diff.Rootfs {
		return listFiles(d, o.printer, labels.Mount{Name: diff.Rootfs, Destination: "/"}, func(detail archives.Detail, visit func(volumebackup.Entry)) error {
			return eng.RootEntries(ctx, s, detail, visit)
		})
	}
	listed := map[int]bool{}
	for _, m := range s.Mounts {
		if m.Archive == nil || listed[m.Archive.Index] || len(args) == 2 && args[1] != m.Name && strings.TrimSuffix(args[1], "/") != m.Destination {
			continue
		}
		listed[m.Archive.Index] = true
		err := listFiles(d, o.printer, m, func(detail archives.Detail, visit func(volumebackup.Entry)) error {
			return eng.Entries(ctx, s, m, detail, visit)
		})
		if err != nil {
			return err
		}
	}
	if len(listed) == 0 && len(args) == 1 {
		return missing{fmt.Errorf("snapshot %s holds the content of no volume: %s after it lists its root filesystem", s.Title(), diff.Rootfs)}
	}
	if len(listed) == 0 {
		return missing{fmt.Errorf("snapshot %s holds the content of no such volume: docker snapshot inspect lists those that it holds", s.Title())}
	}
	return nil
}

// listFiles prints the entries of a volume, or of what is shown like one.
func listFiles(d deps, how printer, m labels.Mount, entries func(detail archives.Detail, visit func(volumebackup.Entry)) error) error {
	if !how.formats() {
		if err := writeLine(d.out, fmt.Sprintf("%s (%s)", cmp.Or(m.Name, m.Source), m.Destination)); err != nil {
			return err
		}
	}
	var failed error
	err := entries(how.fileDetail(), func(e volumebackup.Entry) {
		if failed == nil {
			failed = how.printFile(d.out, m, e)
		}
	})
	return errors.Join(err, failed)
}

// completeInspect completes snapshots or, with --files, one snapshot and what of it can be listed.
func completeInspect(d deps, o *inspectOptions) cobra.CompletionFunc {
	snapshots := completeSnapshots(d, 0)
	parts := completion(func(ctx context.Context, eng engine, args []string, _ string) ([]catalog.Candidate, error) {
		s, err := d.resolve(ctx, eng, args[0])
		all := []catalog.Candidate{{Word: diff.Rootfs}}
		for _, m := range s.Mounts {
			if m.Archive != nil {
				all = append(all, catalog.Candidate{Word: m.Name, About: m.Destination})
			}
		}
		return all, err
	}).complete(d)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch {
		case !o.files || len(args) == 0:
			return snapshots(cmd, args, prefix)
		case len(args) == 1:
			return parts(cmd, args, prefix)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// fileDetail is what has to be known of files: a template that does not name the SHA-256 does not take reading them.
func (p printer) fileDetail() archives.Detail {
	if p.formats() && (p.template == nil || strings.Contains(p.format, "SHA256")) {
		return archives.Summed
	}
	return archives.Listed
}

// printFile prints one entry. There may be millions, so it makes only what is printed.
func (p printer) printFile(out io.Writer, m labels.Mount, e volumebackup.Entry) error {
	if !p.formats() {
		return writeLine(out, fileLine(e))
	}
	return p.print(out, "", newFile(m, e))
}

// file is one entry of a volume, as --format shows it.
type file struct {
	Volume      string   `json:"volume"`
	Destination string   `json:"destination"`
	Path        string   `json:"path"`
	Type        string   `json:"type"`
	Mode        string   `json:"mode"` // octal
	UID         uint32   `json:"uid"`
	GID         uint32   `json:"gid"`
	Size        byteSize `json:"size"`
	Modified    string   `json:"modified"`
	Target      string   `json:"target"`
	Xattrs      words    `json:"xattrs"`
	SHA256      string   `json:"sha256"` // of a file
}

func newFile(m labels.Mount, e volumebackup.Entry) file {
	return file{
		Volume: m.Name, Destination: m.Destination, Path: pathText(e.Path), Type: fileType(e.Kind),
		Mode: fmt.Sprintf("%04o", e.Mode&modeBits), UID: e.UID, GID: e.GID, Size: byteSize(e.Size),
		Modified: rfc3339(e.Modified), Target: pathText(e.Target), Xattrs: newWords(e.Xattrs), SHA256: e.SHA256,
	}
}

// pathText is a path as it is. One that is not UTF-8, or begins with a quote, is quoted as in Go.
func pathText(path encoding.TextMarshaler) string {
	text, _ := path.MarshalText() // a path always can
	return string(text)
}

// modeBits are the permissions, and the bits for setuid, setgid and sticky.
const modeBits = 0o7777

// fileTypes are what the letters of an entry's kind stand for.
var fileTypes = map[string]string{
	"d": "directory", "f": "file", "l": "symlink", "p": "fifo", "s": "socket", "b": "block device", "c": "character device", "h": "hard link",
}

func fileType(kind string) string {
	if name, ok := fileTypes[kind]; ok {
		return name
	}
	return kind
}

// fileLine shows an entry as ls -l does.
func fileLine(e volumebackup.Entry) string {
	line := fmt.Sprintf("%s%s %d:%d %d %s %s", e.Kind, fs.FileMode(e.Mode).Perm(), e.UID, e.GID, e.Size, rfc3339(e.Modified), quoted(string(e.Path)))
	if e.Target != "" {
		line += " -> " + quoted(string(e.Target))
	}
	return line
}

// quoted is a path as it is. One that would break the line is quoted as in Go.
func quoted(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
