package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// expandAll returns words for all snapshots of the named containers, once the user has agreed.
func (o removeOptions) expandAll(ctx context.Context, d deps, containers []string) ([]string, error) {
	if !o.force && !d.in.IsTerminal() {
		return nil, wrongArgument{errors.New("rm --all asks for confirmation; without a terminal, add --force")}
	}
	found, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (found []catalog.Snapshot, err error) {
		for _, name := range containers {
			all, err := listAll(ctx, d, eng, name, p)
			switch {
			case err == nil:
				found = append(found, all...)
			case !o.force || !isNoSnapshot(err):
				return nil, err
			default:
				if err := o.printMissing(d, name, err); err != nil {
					return nil, err
				}
			}
		}
		return found, nil
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if !o.force {
		if err := d.confirm(ctx, describeRemoval(found, o.copies)); err != nil {
			return nil, err
		}
	}
	if !o.force && !o.copies {
		found = withoutPinned(found)
	}
	words := convert(found, func(s catalog.Snapshot) string { return s.Container.Name + ":" + string(s.ID) })
	slices.Sort(words)
	return slices.Compact(words), nil
}

// listAll lists the snapshots of a container or of the container of a service. It fails if there are none.
func listAll(ctx context.Context, d deps, eng engine, name string, p plan.Progress) ([]catalog.Snapshot, error) {
	if err := checkContainer(name); err != nil {
		return nil, err
	}
	return withService(ctx, d, eng, name, func(container string) ([]catalog.Snapshot, error) {
		all, err := eng.List(ctx, catalog.ListOptions{Container: container}, p)
		if err == nil && len(all) == 0 {
			err = &catalog.NotFoundError{Word: name, Reason: fmt.Sprintf("container %s has no snapshots", container)}
		}
		return all, err
	})
}

// withoutPinned leaves out the pinned ones, unless all are.
func withoutPinned(all []catalog.Snapshot) []catalog.Snapshot {
	isPinned := func(s catalog.Snapshot) bool { return s.Pinned }
	if unpinned := slices.DeleteFunc(slices.Clone(all), isPinned); len(unpinned) > 0 {
		return unpinned
	}
	return all
}

// describeRemoval says what rm --all will remove.
func describeRemoval(all []catalog.Snapshot, copies bool) string {
	numbers, pinned := map[string]int64{}, map[string]int64{}
	var containers []string
	for _, s := range all {
		name := s.Container.Name
		if numbers[name]++; numbers[name] == 1 {
			containers = append(containers, name)
		}
		if s.Pinned && !copies {
			pinned[name]++
		}
	}
	head := "WARNING! This will remove, for good:"
	if copies {
		head = "WARNING! This will remove, for good, the containers and volumes that restores made from:"
	}
	lines := []string{head}
	for _, name := range containers {
		line := "  - " + plural(numbers[name]-pinned[name], "snapshot", "snapshots") + " of " + oneLine(name)
		if pinned[name] > 0 {
			line += fmt.Sprintf(" (%d pinned kept; remove with --force)", pinned[name])
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// completeRemoved completes snapshots or, after --all, containers.
func (o *removeOptions) completeRemoved(d deps) cobra.CompletionFunc {
	snapshots, containers := completeSnapshots(d, 0), completeContainers(d)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if o.all {
			return containers(cmd, args, prefix)
		}
		return snapshots(cmd, args, prefix)
	}
}
