package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/command/formatter"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/history"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

type historyOptions struct {
	engine  catalog.ListOptions
	html    string // file to write the page to
	printer printer
}

func newHistoryCommand(d deps) *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history [OPTIONS] [CONTAINER]",
		Short: "Show how snapshots and restores followed each other",
		Long: `Show how the snapshots of a container, and the restores of them, followed each
other: drawn as a tree, newest first. Without a container it shows all.

  *   a snapshot
  o   a restore: what was done after it is a branch
  :   here are snapshots missing: they were removed
  <-  where a container stands: it has not been captured or restored since

SIZE is what taking the snapshot added on the engine. CHANGED names the volumes whose
content is not what it was in the snapshot before, and how many files they have more
or less.

A restore is known by what it left: its container, the safety snapshot that was taken
first, and the session of a run.

--html writes a page with the same tree on a time axis, sizes as bars, and all that is
known of each snapshot: of the newest 50 also what changed since the one before, in
the words of diff. It needs neither a network nor scripts, so that it can be attached
to a ticket.`,
		Example: `  docker snapshot history web
  docker snapshot history --html web.html web
  docker snapshot history --format json web`,
		Args:                  cli.RequiresMaxArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeContainers(d),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if o.html != "" && o.printer.formats() {
				return usageError(cmd, errors.New("--html and --format cannot be used together"))
			}
			return runHistory(ctx, d, o, args)
		}),
	}
	cmd.Flags().StringVar(&o.html, "html", "", "Write a page for a browser to this file")
	o.printer.addFlag(cmd.Flags(), historyEntry{})
	return cmd
}

func runHistory(ctx context.Context, d deps, o historyOptions, args []string) error {
	if len(args) > 0 {
		if err := checkContainer(args[0]); err != nil {
			return err
		}
		o.engine.Container = args[0]
	}
	compared, err := call(d, defaultVolumes(), progressOptions{}, func(eng engine, p plan.Progress) (comparedHistory, error) {
		return withService(ctx, d, eng, o.engine.Container, func(container string) (comparedHistory, error) {
			o.engine.Container = container
			h, err := eng.History(ctx, o.engine, p)
			if err != nil || o.html == "" {
				return comparedHistory{history: h}, err
			}
			return compareHistory(ctx, eng, h, p)
		})
	})
	if err != nil {
		return err
	}
	h := compared.history
	switch {
	case o.html != "":
		return writeHistoryPage(o.html, o.engine.Container, compared, d.clock.now())
	case o.printer.formats():
		for i := range h {
			if err := o.printer.print(d.out, "", newHistoryEntry(h, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := d.out.Write([]byte(historyText(h, d.clock.now()))); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// historyEntry is what history prints of a snapshot, or of a restore.
type historyEntry struct {
	Entry          string          `json:"entry"`   // names it among the others
	Follows        string          `json:"follows"` // the entry that it came after
	Gap            bool            `json:"gap"`
	Event          string          `json:"event"`
	At             string          `json:"at"`
	ID             string          `json:"id"` // of the snapshot
	Name           string          `json:"name"`
	Container      string          `json:"container"`
	ContainerID    string          `json:"container_id"`
	Trigger        string          `json:"trigger"`
	Description    string          `json:"description"`
	Size           byteSize        `json:"size"`
	ChangedVolumes []changedVolume `json:"changed_volumes"`
	InPlace        bool            `json:"in_place"`
	Safety         string          `json:"safety"`
	RunID          string          `json:"run_id"`
	Standing       []standing      `json:"standing"`
}

// The events of a history.
const (
	eventTaken    = "snapshot"
	eventRestored = "restore"
)

// changedVolume is a volume whose content is not what it was in the snapshot before.
type changedVolume struct {
	Volume       string `json:"volume"`
	EntriesDelta int64  `json:"entries_delta"`
	SizeDelta    int64  `json:"size_delta"`
}

// standing is a container that has not been captured or restored since.
type standing struct {
	Container      string `json:"container"`
	ContainerID    string `json:"container_id"`
	ContainerState string `json:"container_state"`
}

func newHistoryEntry(h history.History, i int) historyEntry {
	n := h[i]
	e := historyEntry{
		Entry: entryOf(n), Gap: n.Gap, At: rfc3339(n.At), ChangedVolumes: []changedVolume{},
		Standing: convert(n.Here, func(s history.Standing) standing { return standing{s.Container, s.ID, s.State} }),
	}
	if n.Follows != history.Nothing {
		e.Follows = entryOf(h[n.Follows])
	}
	if n.Snapshot == nil {
		r := n.Restore
		e.Event, e.ID, e.Container, e.ContainerID = eventRestored, string(r.Snapshot), r.Container, r.ContainerID
		e.InPlace, e.Safety, e.RunID = r.InPlace, string(r.Safety), r.RunID
		return e
	}
	s := n.Snapshot
	e.Event, e.ID, e.Name, e.Container, e.ContainerID = eventTaken, string(s.ID), s.Name, s.Container.Name, s.Container.ID
	e.Trigger, e.Description, e.Size, e.RunID = string(s.Trigger), s.Description, byteSize(s.StoredBytes()), s.RunID
	changed, _ := h.Changes(i)
	e.ChangedVolumes = convert(changed, func(c history.Changed) changedVolume { return changedVolume{c.Volume, c.Entries, c.Bytes} })
	return e
}

// entryOf names a node: a snapshot by its ID, and a restore by that of what it restored, the container and the time.
func entryOf(n history.Node) string {
	if n.Snapshot != nil {
		return string(n.Snapshot.ID)
	}
	return strings.Join([]string{string(n.Restore.Snapshot), n.Restore.Container, rfc3339(n.At)}, " ")
}

// historyHeader names the columns of a history; the first is the tree, and the last has no name.
const historyHeader = "\tSNAPSHOT ID\tNAME\t" + formatter.CreatedSinceHeader + "\tTRIGGER\t" + formatter.SizeHeader + "\tCHANGED\t"
