package commands

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// The arguments of the tools that compare snapshots and make several copies.
type (
	mcpDiff struct {
		mcpSnapshot
		With  string `json:"with,omitempty" jsonschema:"another snapshot to compare with, as snapshot; empty: the container as it is now"`
		Limit int    `json:"limit,omitempty" jsonschema:"at most so many files; 0: 200"`
	}
	mcpFork struct {
		mcpSnapshot
		Count int    `json:"count" jsonschema:"how many copies to make"`
		Name  string `json:"name,omitempty" jsonschema:"what the names of the copies begin with, before a number; empty: the container's name"`
	}
)

// diffReport is what diff_snapshot returns.
type diffReport struct {
	changeReport
	Omitted int `json:"omitted"` // how many changes are not in the list
}

// forkList is what fork_snapshot returns.
type forkList struct {
	Copies []forkResult `json:"copies"`
}

// defaultChanges is how many changes a model is shown unless it asks for more.
const defaultChanges = 200

func diffByMCP(ctx context.Context, c *mcpCall, in mcpDiff) (any, error) {
	from, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return nil, err
	}
	o := diff.Options{Old: from.Word()}
	if in.With != "" {
		to, err := c.resolve(ctx, in.With)
		if err != nil {
			return nil, err
		}
		o.New = to.Word()
	}
	limit := in.Limit
	if limit <= 0 {
		limit = defaultChanges
	}
	list, count := changeList{keep: true}, 0
	err = c.eng.Diff(ctx, o, c.progress, func(change diff.Change) {
		count++
		list.keep = count <= limit
		list.add(change)
	})
	if err != nil {
		return nil, err
	}
	return diffReport{changeReport: *list.report(), Omitted: max(0, count-limit)}, nil
}

func forkByMCP(ctx context.Context, c *mcpCall, in mcpFork) (any, error) {
	from, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return nil, err
	}
	o := forkOptions{engine: copies.ForkOptions{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(from.ID), Name: in.Name}, Count: in.Count}}
	if err := o.check(); err != nil {
		return nil, wrongArgument{err}
	}
	made, err := c.eng.Fork(ctx, o.engine, c.progress)
	if err != nil {
		return nil, err
	}
	result := forkList{}
	for _, one := range made {
		result.Copies = append(result.Copies, newForkResult(c.deps, one, c.warned.list))
	}
	return result, nil
}
