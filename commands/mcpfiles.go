package commands

import (
	"context"
	"encoding/base64"
	"fmt"
	"path"

	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// The arguments of the tools that compare snapshots and make several copies.
type (
	mcpDiff struct {
		mcpSnapshot
		With string `json:"with,omitempty" jsonschema:"another snapshot to compare with, as snapshot; empty: the container as it is now"`
		Path string `json:"path,omitempty" jsonschema:"only this file, or the files below this directory"`
		mcpPage
	}
	mcpRead struct {
		mcpSnapshot
		Path string `json:"path" jsonschema:"absolute path in the container; it leads into volumes and behind symlinks"`
	}
	mcpFork struct {
		mcpSnapshot
		Count int    `json:"count" jsonschema:"how many copies to make"`
		Name  string `json:"name,omitempty" jsonschema:"what the names of the copies begin with, before a number; empty: the container's name"`
	}
)

// diffReport is the object of diff_snapshot.
type diffReport struct {
	Counts []changeCount `json:"counts"` // one for each volume
	List   []fileChange  `json:"list"`
	More   int           `json:"more"` // changes after the list
}

// forkList is the object of fork_snapshot.
type forkList struct {
	Copies []mcpCopied `json:"copies"`
	More   int         `json:"more"`
}

// mcpCopied is a container that fork_snapshot has made.
type mcpCopied struct {
	Container   string          `json:"container"`
	ContainerID string          `json:"container_id"`
	Started     bool            `json:"started"`
	Ports       []publishedPort `json:"ports,omitempty"`
}

// mcpFile is the object of read_file.
type mcpFile struct {
	Path     string `json:"path"`
	Bytes    int    `json:"bytes"`
	Encoding string `json:"encoding"` // text or base64
	Content  string `json:"content"`
}

// mcpFileMost is how many bytes of a file read_file answers with.
const mcpFileMost = 64 << 10

// readByMCP reads one file of a snapshot.
func readByMCP(ctx context.Context, c *mcpCall, in mcpRead) (mcpAnswer, error) {
	from, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return mcpAnswer{}, err
	}
	if !path.IsAbs(in.Path) {
		return mcpAnswer{}, wrongArgument{fmt.Errorf("invalid path %q: begin it with a slash", in.Path)}
	}
	content, err := c.eng.ReadFile(ctx, extract.Source{Snapshot: from, Path: in.Path, Follow: true}, c.progress)
	if err != nil {
		return mcpAnswer{}, err
	}
	if len(content) > mcpFileMost {
		return mcpAnswer{}, wrongArgument{fmt.Errorf("%q has %d bytes, more than the %d of an answer: use docker snapshot cp to copy it", in.Path, len(content), mcpFileMost)}
	}
	object := mcpFile{Path: in.Path, Bytes: len(content), Encoding: "text", Content: string(content)}
	if isBinary(content) {
		object.Encoding, object.Content = "base64", base64.StdEncoding.EncodeToString(content)
	}
	return mcpAnswer{fmt.Sprintf("%s has %d bytes in snapshot %s.", in.Path, len(content), from.Title()), object}, nil
}

func diffByMCP(ctx context.Context, c *mcpCall, in mcpDiff) (mcpAnswer, error) {
	from, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return mcpAnswer{}, err
	}
	o := diff.Options{Old: from.Word()}
	if in.Path != "" {
		o.Paths = []string{in.Path}
		if err := checkPaths(o.Paths); err != nil {
			return mcpAnswer{}, wrongArgument{err}
		}
	}
	if in.With != "" {
		to, err := c.resolve(ctx, in.With)
		if err != nil {
			return mcpAnswer{}, err
		}
		o.New = to.Word()
	}
	list, count := changeList{}, 0
	report := diffReport{Counts: []changeCount{}, List: []fileChange{}}
	err = c.eng.Diff(ctx, o, c.progress, func(change diff.Change) {
		if count++; count > in.Skip && len(report.List) < mcpListMost {
			report.List = append(report.List, newFileChange(change))
		}
		list.add(change)
	})
	if err != nil {
		return mcpAnswer{}, err
	}
	counts, _ := pageOf(mcpPage{}, list.volumes)
	report.Counts = counts
	report.More = max(0, count-max(in.Skip, 0)-len(report.List))
	text := plural(int64(count), "change", "changes") + " since snapshot " + from.Title() + "."
	return mcpAnswer{text + andMore(in.mcpPage, len(report.List), report.More), report}, nil
}

func forkByMCP(ctx context.Context, c *mcpCall, in mcpFork) (mcpAnswer, error) {
	from, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return mcpAnswer{}, err
	}
	o := forkOptions{engine: copies.ForkOptions{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(from.ID), Name: in.Name}, Count: in.Count}}
	if err := o.check(); err != nil {
		return mcpAnswer{}, wrongArgument{err}
	}
	made, err := c.eng.Fork(ctx, o.engine, c.progress)
	if err != nil {
		return mcpAnswer{}, err
	}
	c.noteCopies(c.progress, made...)
	var copies []mcpCopied
	for _, one := range made {
		r := newForkResult(c.deps, one, nil)
		copies = append(copies, mcpCopied{r.RestoredContainer, r.RestoredContainerID, r.Started, r.Ports})
	}
	part, more := pageOf(mcpPage{}, copies)
	return mcpAnswer{fmt.Sprintf("Made %s of snapshot %s.", plural(int64(len(copies)), "container", "containers"), from.Title()), forkList{part, more}}, nil
}
