package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

type forkOptions struct {
	engine   copies.ForkOptions
	starting starting
	volumes  volumeOptions
	progress progressOptions
	printer  printer
}

// forkResult is what fork prints for each copy.
type forkResult struct {
	restoreResult
	Ports []publishedPort `json:"ports"`
}

// publishedPort is a port that a copy publishes.
type publishedPort struct {
	Port     string `json:"port"`
	Address  string `json:"address"`
	HostPort string `json:"host_port"`
}

func newForkCommand(d deps) *cobra.Command {
	var o forkOptions
	cmd := &cobra.Command{
		Use:   "fork [OPTIONS] SNAPSHOT|CONTAINER",
		Short: "Make several copies at once",
		Long: `Make several copies of a snapshot at once, and print their container IDs.

If a container has that name or ID, a snapshot of it is taken first. It stays, as
any snapshot that create takes; 'rm --copies' removes the copies.

The copies are called <container>-1, <container>-2 and so on; --name says what to
put before the number. Each has new volumes of its own, and is what restore makes,
with one difference: every host port is chosen by the engine, because only one of
them could have the captured one. What is stored for the volumes is read once.

There are all copies in the end, or none: if one cannot be made or, with --wait,
does not come up, everything that was made is removed, and so is the snapshot that
was taken.`,
		Example: `  docker snapshot fork -n 4 db
  docker snapshot fork -n 16 --name try --wait --format json db:before-upgrade
  docker snapshot rm --copies --force db:before-upgrade`,
		Args:                  cli.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeForks(d),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			o.engine.Snapshot = args[0]
			err := errors.Join(o.check(), o.starting.apply(&o.engine.RestoreOptions), checkWaiting(cmd.Flags(), o.engine.Wait, o.starting.noStart))
			if err != nil {
				return usageError(cmd, err)
			}
			return runFork(ctx, d, o)
		}),
	}
	flags := cmd.Flags()
	flags.IntVarP(&o.engine.Count, "count", "n", 1, fmt.Sprintf("How many copies to make, up to %d", copies.MaxForks))
	flags.StringVar(&o.engine.Name, "name", "", "What the names of the copies begin with (default: the name of the container that was captured)")
	flags.BoolVar(&o.engine.Wait, "wait", false, "Wait until every copy is healthy, has run for --settle, or has ended with 0; else remove all")
	addWaitingFlags(flags, &o.engine.Waiting)
	addCopyFlags(flags, &o.engine.RestoreOptions, &o.starting)
	o.volumes.addFindingFlags(flags)
	o.printer.addFlag(flags, forkResult{})
	o.progress.addFlags(flags)
	return cmd
}

func (o forkOptions) check() error {
	if o.engine.Count < 1 || o.engine.Count > copies.MaxForks {
		return fmt.Errorf("invalid --count %d: use a number from 1 to %d", o.engine.Count, copies.MaxForks)
	}
	return nil
}

func runFork(ctx context.Context, d deps, o forkOptions) error {
	if err := checkSnapshot(o.engine.Snapshot); err != nil {
		return err
	}
	var warned warningList
	made, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) ([]build.Restored, error) {
		made, err := withSnapshot(ctx, d, eng, o.engine.Snapshot, func(word string) ([]build.Restored, error) {
			o.engine.Snapshot = word
			return eng.Fork(ctx, o.engine, d.advised(warned.from(p)))
		})
		d.noteCopies(p, made...)
		return made, err
	})
	if err != nil {
		return err
	}
	isIncomplete := false
	for _, one := range made {
		r := newForkResult(d, one, warned.list)
		if err := o.printer.print(d.out, r.RestoredContainerID, r); err != nil {
			return err
		}
		isIncomplete = isIncomplete || r.Incomplete
	}
	if isIncomplete {
		return fmt.Errorf("the copies are %w: see the warnings", errIncomplete)
	}
	return nil
}

func newForkResult(d deps, made build.Restored, warnings []string) forkResult {
	return forkResult{newRestored(d, made, warnings), convert(made.Ports, func(p build.Port) publishedPort {
		return publishedPort{Port: p.Container, Address: p.HostIP, HostPort: p.HostPort}
	})}
}

// completeForks completes a container or a snapshot.
func completeForks(d deps) cobra.CompletionFunc {
	return upTo(1, completion(func(ctx context.Context, eng engine, _ []string, prefix string) ([]catalog.Candidate, error) {
		containers, err := eng.Containers(ctx)
		if err != nil {
			return nil, err
		}
		snapshots, err := eng.References(ctx, prefix)
		return append(containers, snapshots...), err
	}).complete(d))
}
