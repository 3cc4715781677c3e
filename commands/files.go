package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// runFiles lists the entries of a snapshot's volumes, or of one of them.
func runFiles(ctx context.Context, d deps, args []string) error {
	if len(args) > 2 {
		return errors.New("--files takes one snapshot, and at most one volume")
	}
	if err := checkSnapshot(args[0]); err != nil {
		return err
	}
	eng, err := d.engine()
	if err != nil {
		return err
	}
	s, err := eng.Resolve(ctx, args[0])
	if err != nil {
		return err
	}
	listed := map[int]bool{}
	for _, m := range s.Mounts {
		if m.Archive == nil || listed[m.Archive.Index] || len(args) == 2 && args[1] != m.Name && args[1] != m.Destination {
			continue
		}
		listed[m.Archive.Index] = true
		if err := listFiles(ctx, d, eng, s.ID, m); err != nil {
			return err
		}
	}
	if len(listed) == 0 {
		return fmt.Errorf("snapshot %s holds the content of no such volume", s.ID)
	}
	return nil
}

func listFiles(ctx context.Context, d deps, eng engine, id labels.ID, m labels.Mount) error {
	if err := writeLine(d.out, fmt.Sprintf("%s (%s)", m.Name, m.Destination)); err != nil {
		return err
	}
	var failed error
	err := eng.Entries(ctx, id, m, func(e volumebackup.Entry) {
		if failed == nil {
			failed = writeLine(d.out, fileLine(e))
		}
	})
	return errors.Join(err, failed)
}

// fileLine shows an entry as ls -l does.
func fileLine(e volumebackup.Entry) string {
	line := fmt.Sprintf("%s%s %d:%d %d %s %s", e.Kind, fs.FileMode(e.Mode).Perm(), e.UID, e.GID, e.Size, rfc3339(e.Modified), quoted(string(e.Path)))
	if e.Target != "" {
		line += " -> " + quoted(string(e.Target))
	}
	return line
}

// quoted is a path as it is, or as Go writes it where it would break the line.
func quoted(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
