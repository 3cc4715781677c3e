package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
)

// purgeResult is what recover --purge prints of each thing that it has removed.
type purgeResult struct {
	Status    string   `json:"status"`
	Timestamp string   `json:"timestamp"`
	Kind      string   `json:"kind"`
	Object    string   `json:"object"`
	Size      byteSize `json:"size"`
}

// purgePlan is what a purge would remove, and what it would keep.
type purgePlan struct {
	all  []removal.Purgeable
	kept []string // stores that users have made
}

// runPurge removes everything that this program has made on the engine, except containers
// and their volumes.
func runPurge(ctx context.Context, d deps, o recoverOptions) error {
	if !o.force && !d.in.IsTerminal() {
		return wrongArgument{errors.New("--purge asks for confirmation; without a terminal, add --force")}
	}
	found, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (found purgePlan, err error) {
		found.all, found.kept, err = eng.FindPurgeable(ctx, p)
		return found, err
	})
	if err != nil {
		return err
	}
	if len(found.kept) > 0 {
		if err := writeLine(d.err, "These stores were made by somebody else. They stay, with their content: "+strings.Join(found.kept, ", ")); err != nil {
			return err
		}
	}
	if len(found.all) == 0 {
		return writeLine(d.err, "There is nothing to remove.")
	}
	if !o.force {
		if err := d.confirm(ctx, describePurge(found.all)); err != nil {
			return err
		}
	}
	removed, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) ([]removal.Purgeable, error) {
		return eng.Purge(ctx, found.all, p)
	})
	for _, one := range removed {
		r := purgeResult{Status: statusRemoved, Timestamp: rfc3339(d.clock.now()), Kind: string(one.Kind), Object: one.Name, Size: byteSize(one.Size)}
		if writeErr := o.printer.print(d.out, purgeWords[one.Kind].one+" "+one.Name, r); writeErr != nil {
			return writeErr
		}
	}
	return err
}

// purgeWords are the words that people have for each kind.
var purgeWords = map[removal.PurgeKind]struct{ one, many string }{
	removal.PurgeSnapshot:    {"snapshot", "snapshots"},
	removal.PurgeRun:         {"run", "records of runs"},
	removal.PurgeTag:         {"tag", "tags of images that were snapshots"},
	removal.PurgeWorker:      {"worker", "containers of workers"},
	removal.PurgeStore:       {"store", "stores"},
	removal.PurgeKey:         {"key", "keys"},
	removal.PurgeWorkerImage: {"worker image", "worker images"},
}

// describePurge says what will be removed, and how much space it takes.
func describePurge(all []removal.Purgeable) string {
	names, total := map[removal.PurgeKind][]string{}, int64(0)
	var containers, pinned []string
	for _, one := range all {
		names[one.Kind] = append(names[one.Kind], one.Name)
		total += one.Size
		if one.Kind == removal.PurgeSnapshot {
			containers = append(containers, one.Container)
		}
		if one.Pinned {
			pinned = append(pinned, one.Name)
		}
	}
	slices.Sort(containers)
	containers = slices.Compact(containers)
	lines := []string{"WARNING! This removes from this engine, for good:"}
	if n := len(names[removal.PurgeSnapshot]); n > 0 {
		line := plural(int64(n), "snapshot", "snapshots") + " of " + plural(int64(len(containers)), "container", "containers")
		if len(pinned) > 0 {
			line += fmt.Sprintf(", %d of them pinned: %s", len(pinned), strings.Join(pinned, ", "))
		}
		lines = append(lines, "  - "+line)
	}
	for _, kind := range []removal.PurgeKind{removal.PurgeRun, removal.PurgeTag, removal.PurgeStore, removal.PurgeWorker, removal.PurgeWorkerImage} {
		if n := len(names[kind]); n > 0 {
			words := purgeWords[kind]
			if kind == removal.PurgeStore {
				words.one, words.many = "store, with the content of all volumes in it", "stores, with the content of all volumes in them"
			}
			shown := ""
			if kind != removal.PurgeWorkerImage {
				shown = ": " + strings.Join(names[kind], ", ")
			}
			lines = append(lines, "  - "+plural(int64(n), words.one, words.many)+shown)
		}
	}
	if len(names[removal.PurgeKey]) > 0 {
		lines = append(lines, "  - the engine's key, by which its own snapshots are known: "+names[removal.PurgeKey][0])
	}
	return strings.Join(append(lines,
		fmt.Sprintf("This is %s in all. Containers and their volumes stay, restored ones too.", size(total))), "\n")
}
