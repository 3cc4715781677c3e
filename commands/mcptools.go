package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// The arguments of the tools.
type (
	mcpCreate struct {
		Container   string   `json:"container" jsonschema:"name of the container"`
		Name        string   `json:"name,omitempty" jsonschema:"a name for the snapshot: letters, digits, '_', '.' and '-', unique for the container"`
		Description string   `json:"description,omitempty" jsonschema:"why it is taken"`
		Tags        []string `json:"tags,omitempty" jsonschema:"words to find it by"`
		StepID      string   `json:"step_id,omitempty" jsonschema:"the step of a run that it belongs to"`
	}
	mcpList struct {
		Container string `json:"container,omitempty" jsonschema:"name of a container; empty: all"`
		Last      int    `json:"last,omitempty" jsonschema:"at most so many, the newest first; 0: all"`
	}
	mcpSnapshot struct {
		Snapshot string `json:"snapshot" jsonschema:"an ID, container:name, container@5m for the state 5 minutes ago, or container for its newest, safety snapshots left out"`
	}
	mcpPreview struct {
		mcpSnapshot
		mcpOnly
		InPlace bool `json:"in_place,omitempty" jsonschema:"preview restore_in_place; otherwise restore_copy"`
	}
	mcpOnly struct {
		Only []string `json:"only,omitempty" jsonschema:"in place, only these go back: volumes, by name or where they are mounted, and rootfs for the root filesystem; volumes alone keep the container; empty: everything"`
	}
	mcpReplace struct {
		mcpSnapshot
		mcpOnly
	}
	mcpCopy struct {
		mcpSnapshot
		Name string `json:"name,omitempty" jsonschema:"name of the new container"`
	}
	mcpUndo struct {
		Container string `json:"container" jsonschema:"name of the container"`
		mcpOnly
	}
)

// snapshotList is what list_snapshots returns.
type snapshotList struct {
	Snapshots []listed `json:"snapshots"`
}

// addTools offers all tools.
func (s *mcpServer) addTools(server *mcp.Server) {
	yes, no := true, false
	reads := mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no}
	adds := mcp.ToolAnnotations{DestructiveHint: &no}
	destroys := mcp.ToolAnnotations{DestructiveHint: &yes}
	destroysOnce := mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true}
	addTool(s, server, mcpTool[mcpCreate]{"create_snapshot", "Take a snapshot of a container: its filesystem, its volumes and its whole configuration. The container goes on running.", adds, []any{createResult{}}, createByMCP})
	addTool(s, server, mcpTool[mcpList]{"list_snapshots", "List the snapshots, newest first.", reads, []any{snapshotList{}}, listByMCP})
	addTool(s, server, mcpTool[mcpSnapshot]{"inspect_snapshot", "Show everything about a snapshot: the container's configuration, its mounts, and what is not captured.", reads, []any{details{}}, inspectByMCP})
	addTool(s, server, mcpTool[mcpPreview]{"preview_restore", "Show what a restore would do and change, and every problem that stands in its way. Nothing is changed.", reads, []any{restoreResult{}}, previewByMCP})
	addTool(s, server, mcpTool[mcpCopy]{"restore_copy", "Bring a snapshot back as a new container beside the original, with volumes of its own.", adds, []any{restoreResult{}}, copyByMCP})
	addTool(s, server, mcpTool[mcpFork]{"fork_snapshot", "Make several copies of a snapshot at once, all or none, each with volumes of its own.", adds, []any{forkList{}}, forkByMCP})
	addTool(s, server, mcpTool[mcpDiff]{"diff_snapshot", "Show what changed in the files since a snapshot, or between two: how much in each volume, and which files.", reads, []any{diffReport{}}, diffByMCP})
	addTool(s, server, mcpTool[mcpReplace]{"restore_in_place", "Make the container itself and its volumes what they were at the snapshot. What was changed since is lost, but a safety snapshot is taken first: undo_restore goes back to it.", destroysOnce, []any{restoreResult{}}, replaceByMCP})
	addTool(s, server, mcpTool[mcpUndo]{"undo_restore", "Take the latest restore_in_place of a container back, with the same only. Called twice, it does the restore again.", destroys, []any{restoreResult{}}, undoByMCP})
	addTool(s, server, mcpTool[mcpSnapshot]{"remove_snapshot", "Remove a snapshot for good, unless it is pinned. If it is gone already, the status is not_found.", destroysOnce, []any{removeResult{}, missingResult{}}, removeByMCP})
}

func createByMCP(ctx context.Context, c *mcpCall, in mcpCreate) (any, error) {
	if err := c.allow(in.Container); err != nil {
		return nil, err
	}
	if in.Name != "" {
		if err := labels.CheckName(in.Name); err != nil {
			return nil, wrongArgument{err}
		}
	}
	for _, tag := range in.Tags {
		if _, err := checkTag(tag); err != nil {
			return nil, wrongArgument{err}
		}
	}
	o := capture.Options{Container: in.Container, Trigger: labels.TriggerAgent, StepID: in.StepID}
	o.Name, o.Description, o.Tags = in.Name, in.Description, in.Tags
	if container, runID := c.runDefaults(); container == in.Container { // the agent is the command of a run
		o.RunID = runID
	}
	made, err := c.eng.Create(ctx, o, c.progress)
	if err != nil {
		return nil, err
	}
	if made.Layers == nil { // in a run they are known
		made.Layers = layersOf(ctx, c.eng, made.Snapshot)
	}
	c.tidyAfter(ctx, made.Trigger)
	if made.SweepDue {
		c.calls.Go(func() { c.eng.Sweep(c.ending, nil) })
	}
	return newCreateResult(made, c.warned.list), nil
}

func listByMCP(ctx context.Context, c *mcpCall, in mcpList) (any, error) {
	if in.Container != "" {
		if err := c.allow(in.Container); err != nil {
			return nil, err
		}
	}
	all, err := c.eng.List(ctx, catalog.ListOptions{Container: in.Container}, c.progress)
	if err != nil {
		return nil, err
	}
	result := snapshotList{Snapshots: []listed{}}
	for _, found := range all {
		if c.allow(found.Container.Name) == nil && (in.Last <= 0 || len(result.Snapshots) < in.Last) {
			result.Snapshots = append(result.Snapshots, newListed(found))
		}
	}
	return result, nil
}

func inspectByMCP(ctx context.Context, c *mcpCall, in mcpSnapshot) (any, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return nil, err
	}
	restores, err := c.eng.RestoresOf(ctx, found)
	restores = slices.DeleteFunc(restores, func(r catalog.Restore) bool { return c.allow(r.Container) != nil })
	return newDetails(found, restores), err
}

func previewByMCP(ctx context.Context, c *mcpCall, in mcpPreview) (any, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return nil, err
	}
	if in.InPlace {
		return c.replace(ctx, found, in.Only, true)
	}
	return c.copy(ctx, found, "", true)
}

func copyByMCP(ctx context.Context, c *mcpCall, in mcpCopy) (any, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return nil, err
	}
	return c.copy(ctx, found, in.Name, false)
}

func (c *mcpCall) copy(ctx context.Context, from catalog.Snapshot, name string, dryRun bool) (any, error) {
	restored, err := c.eng.Restore(ctx, runconfig.RestoreOptions{Snapshot: string(from.ID), Name: name, DryRun: dryRun}, c.progress)
	if err != nil {
		return nil, err
	}
	return planned(newRestored(c.deps, restored, c.warned.list), dryRun), nil
}

func replaceByMCP(ctx context.Context, c *mcpCall, in mcpReplace) (any, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return nil, err
	}
	return c.replace(ctx, found, in.Only, false)
}

func (c *mcpCall) replace(ctx context.Context, to catalog.Snapshot, only []string, dryRun bool) (any, error) {
	for _, word := range only {
		if _, err := checkPart(word); err != nil {
			return nil, wrongArgument{err}
		}
	}
	o := restoreOptions{engine: replace.Options{
		Only: only,
		RestoreOptions: runconfig.RestoreOptions{
			Snapshot: string(to.ID), DryRun: dryRun, Waiting: runconfig.Waiting{Wait: true, Settle: runconfig.DefaultSettle},
		},
	}}
	replaced, err := c.eng.Replace(ctx, o.engine, c.progress)
	if err != nil {
		return nil, c.withRecovery(withGuard(err))
	}
	r := planned(newReplaced(c.deps, replaced, c.warned.list), dryRun)
	r.Undo = o.undoCommand(c.deps, replaced)
	if dryRun {
		r.Changes, err = c.countChanges(ctx, o.differences(replaced))
	}
	return r, err
}

// countChanges counts what a restore in place would change. The list could be too long for a model.
func (c *mcpCall) countChanges(ctx context.Context, between diff.Options) (*changeReport, error) {
	var list changeList
	if err := c.eng.Diff(ctx, between, c.progress, list.add); err != nil {
		return nil, fmt.Errorf("find out what would change: %w", err)
	}
	return list.report(), nil
}

// planned says of the result of a dry run that nothing was done.
func planned(r restoreResult, dryRun bool) restoreResult {
	if dryRun {
		r.Status = statusPlanned
	}
	return r
}

// undoByMCP restores the newest safety snapshot of a container.
func undoByMCP(ctx context.Context, c *mcpCall, in mcpUndo) (any, error) {
	if err := c.allow(in.Container); err != nil {
		return nil, err
	}
	all, err := c.eng.List(ctx, catalog.ListOptions{Container: in.Container}, c.progress)
	if err != nil {
		return nil, err
	}
	for _, found := range all { // newest first
		if found.Trigger == labels.TriggerPreRestore && found.Container.Name == in.Container {
			return c.replace(ctx, found, in.Only, false)
		}
	}
	return nil, &catalog.NotFoundError{Word: in.Container, Reason: "container " + in.Container + " has no safety snapshot: no restore in place is to be taken back"}
}

func removeByMCP(ctx context.Context, c *mcpCall, in mcpSnapshot) (any, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if isNoSnapshot(err) {
		return missingResult{Status: statusMissing, Word: in.Snapshot}, nil
	}
	if err == nil {
		err = found.CheckNamedBy(in.Snapshot)
	}
	if err != nil {
		return nil, err
	}
	removed := c.eng.Remove(ctx, []string{string(found.ID)}, removal.Options{}, c.progress)[0]
	if removed.Err != nil {
		return nil, removed.Err
	}
	return removeResult{newOutcome(removed.Snapshot, statusRemoved, c.clock.now())}, nil
}
