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
		mcpPage
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
	}
)

// snapshotList is the object of list_snapshots.
type snapshotList struct {
	Snapshots []mcpSummary `json:"snapshots"`
	More      int          `json:"more"`
}

// addTools offers all tools.
func (s *mcpServer) addTools(server *mcp.Server) {
	yes, no := true, false
	reads := mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no}
	adds := mcp.ToolAnnotations{DestructiveHint: &no}
	destroys := mcp.ToolAnnotations{DestructiveHint: &yes}
	destroysOnce := mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true}
	addTool(s, server, mcpTool[mcpCreate]{"create_snapshot", "Take a snapshot of a container: its filesystem, its volumes and its whole configuration. The container goes on running.", adds, createByMCP})
	addTool(s, server, mcpTool[mcpList]{"list_snapshots", "List the snapshots, newest first, 20 at a time.", reads, listByMCP})
	addTool(s, server, mcpTool[mcpSnapshot]{"inspect_snapshot", "Show a snapshot: its container's image and state, the volumes in it, and the mounts that are not.", reads, inspectByMCP})
	addTool(s, server, mcpTool[mcpPreview]{"preview_restore", "Show what a restore would do and change, and every problem that stands in its way. Nothing is changed.", reads, previewByMCP})
	addTool(s, server, mcpTool[mcpCopy]{"restore_copy", "Bring a snapshot back as a new container beside the original, with volumes of its own.", adds, copyByMCP})
	addTool(s, server, mcpTool[mcpFork]{"fork_snapshot", "Make several copies of a snapshot at once, all or none, each with volumes of its own.", adds, forkByMCP})
	addTool(s, server, mcpTool[mcpDiff]{"diff_snapshot", "List changed files since a snapshot, or between two, 20 at a time, with sums for each volume.", reads, diffByMCP})
	addTool(s, server, mcpTool[mcpRead]{"read_file", "Read one file of a snapshot: at most 64 KiB, as text, or in base64 if it is binary.", reads, readByMCP})
	addTool(s, server, mcpTool[mcpReplace]{"restore_in_place", "Bring the container itself and its volumes back to the state of the snapshot. Later changes are lost, but a safety snapshot is taken first: undo_restore goes back to it.", destroysOnce, replaceByMCP})
	addTool(s, server, mcpTool[mcpUndo]{"undo_restore", "Take the latest restore_in_place of a container back, and touch nothing else. Each further call goes back one restore more.", destroys, undoByMCP})
	addTool(s, server, mcpTool[mcpSnapshot]{"remove_snapshot", "Remove a snapshot for good, unless it is pinned. If it is gone already, the status is not_found.", destroysOnce, removeByMCP})
}

func createByMCP(ctx context.Context, c *mcpCall, in mcpCreate) (mcpAnswer, error) {
	if err := c.allow(in.Container); err != nil {
		return mcpAnswer{}, err
	}
	if in.Name != "" {
		if err := labels.CheckName(in.Name); err != nil {
			return mcpAnswer{}, wrongArgument{err}
		}
	}
	for _, tag := range in.Tags {
		if _, err := checkTag(tag); err != nil {
			return mcpAnswer{}, wrongArgument{err}
		}
	}
	o := capture.Options{Container: in.Container, Trigger: labels.TriggerAgent, StepID: in.StepID}
	o.Name, o.Description, o.Tags = in.Name, in.Description, in.Tags
	if container, runID := c.runDefaults(); container == in.Container { // the agent is the command of a run
		o.RunID = runID
	}
	made, err := c.eng.Create(ctx, o, c.progress)
	if err != nil {
		return mcpAnswer{}, err
	}
	if made.Layers == nil { // in a run they are known
		made.Layers = layersOf(ctx, c.eng, made.Snapshot)
	}
	c.tidyAfter(ctx, made.Trigger)
	if made.SweepDue {
		c.calls.Go(func() { c.eng.Sweep(c.ending, nil) })
	}
	return answerCreated(newCreateResult(made, c.warned.list), made.Snapshot), nil
}

func listByMCP(ctx context.Context, c *mcpCall, in mcpList) (mcpAnswer, error) {
	if in.Container != "" {
		if err := c.allow(in.Container); err != nil {
			return mcpAnswer{}, err
		}
	}
	all, err := c.eng.List(ctx, catalog.ListOptions{Container: in.Container}, c.progress)
	if err != nil {
		return mcpAnswer{}, err
	}
	allowed := []mcpSummary{}
	for _, found := range all {
		if c.allow(found.Container.Name) == nil {
			allowed = append(allowed, newMCPSummary(found))
		}
	}
	part, more := pageOf(in.mcpPage, allowed)
	text := plural(int64(len(allowed)), "snapshot", "snapshots") + ", the newest first."
	return mcpAnswer{text + andMore(in.mcpPage, len(part), more), snapshotList{part, more}}, nil
}

func inspectByMCP(ctx context.Context, c *mcpCall, in mcpSnapshot) (mcpAnswer, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return mcpAnswer{}, err
	}
	restores, err := c.eng.RestoresOf(ctx, found)
	restores = slices.DeleteFunc(restores, func(r catalog.Restore) bool { return c.allow(r.Container) != nil })
	return answerInspected(found, restores), err
}

func previewByMCP(ctx context.Context, c *mcpCall, in mcpPreview) (mcpAnswer, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return mcpAnswer{}, err
	}
	if in.InPlace {
		return c.replace(ctx, found, in.Only, true)
	}
	return c.copy(ctx, found, "", true)
}

func copyByMCP(ctx context.Context, c *mcpCall, in mcpCopy) (mcpAnswer, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return mcpAnswer{}, err
	}
	return c.copy(ctx, found, in.Name, false)
}

func (c *mcpCall) copy(ctx context.Context, from catalog.Snapshot, name string, dryRun bool) (mcpAnswer, error) {
	restored, err := c.eng.Restore(ctx, runconfig.RestoreOptions{Snapshot: string(from.ID), Name: name, DryRun: dryRun}, c.progress)
	if err != nil {
		return mcpAnswer{}, err
	}
	if !dryRun {
		c.noteCopies(c.progress, restored)
	}
	return answerRestored(planned(newRestored(c.deps, restored, c.warned.list), dryRun), from), nil
}

func replaceByMCP(ctx context.Context, c *mcpCall, in mcpReplace) (mcpAnswer, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if err != nil {
		return mcpAnswer{}, err
	}
	return c.replace(ctx, found, in.Only, false)
}

func (c *mcpCall) replace(ctx context.Context, to catalog.Snapshot, only []string, dryRun bool) (mcpAnswer, error) {
	for _, word := range only {
		if _, err := checkPart(word); err != nil {
			return mcpAnswer{}, wrongArgument{err}
		}
	}
	return c.replaceWith(ctx, replace.Options{
		Only: only,
		RestoreOptions: runconfig.RestoreOptions{
			Snapshot: string(to.ID), DryRun: dryRun, Waiting: runconfig.Waiting{Wait: true, Settle: runconfig.DefaultSettle},
		},
	})
}

func (c *mcpCall) replaceWith(ctx context.Context, options replace.Options) (mcpAnswer, error) {
	o := restoreOptions{engine: options}
	replaced, err := c.eng.Replace(ctx, o.engine, c.progress)
	if err != nil {
		return mcpAnswer{}, c.withRecovery(withGuard(err))
	}
	c.noteReplaced(c.progress, o.engine, replaced)
	r := planned(newReplaced(c.deps, replaced, c.warned.list), options.DryRun)
	if options.DryRun {
		r.Changes, err = c.countChanges(ctx, o.differences(replaced))
	}
	return answerRestored(r, replaced.Snapshot), err
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

// undoByMCP takes back the last restore in place of a container, as undo does.
func undoByMCP(ctx context.Context, c *mcpCall, in mcpUndo) (mcpAnswer, error) {
	if err := c.allow(in.Container); err != nil {
		return mcpAnswer{}, err
	}
	all, err := c.eng.FindUndo(ctx, in.Container)
	if err != nil {
		return mcpAnswer{}, err
	}
	if len(all) > 1 { // the others may be the business of other clients
		return mcpAnswer{}, wrongArgument{fmt.Errorf("%s was restored together with other containers; this takes back all of them: %s", in.Container, c.commandLine("undo", in.Container))}
	}
	all[0].Waiting = runconfig.Waiting{Wait: true, Settle: runconfig.DefaultSettle}
	return c.replaceWith(ctx, all[0])
}

func removeByMCP(ctx context.Context, c *mcpCall, in mcpSnapshot) (mcpAnswer, error) {
	found, err := c.resolve(ctx, in.Snapshot)
	if isNoSnapshot(err) {
		return mcpAnswer{"Snapshot " + in.Snapshot + " does not exist.", missingResult{Status: statusMissing, Word: in.Snapshot}}, nil
	}
	if err == nil {
		err = found.CheckNamedBy(in.Snapshot)
	}
	if err != nil {
		return mcpAnswer{}, err
	}
	removed := c.eng.Remove(ctx, []string{string(found.ID)}, removal.Options{}, c.progress)[0]
	if removed.Err != nil {
		return mcpAnswer{}, removed.Err
	}
	object := struct {
		Status string `json:"status"`
		ID     string `json:"id"`
	}{statusRemoved, string(found.ID)}
	return mcpAnswer{fmt.Sprintf("Removed snapshot %s of %s.", found.Title(), found.Container.Name), object}, nil
}
