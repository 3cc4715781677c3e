package commands

import (
	"context"
	"errors"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/opts"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

type diffOptions struct {
	engine   diff.Options
	stat     bool
	content  string // the path of the file whose content is compared
	volumes  volumeOptions
	progress progressOptions
	printer  printer
}

func newDiffCommand(d deps) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff [OPTIONS] SNAPSHOT [SNAPSHOT|CONTAINER]",
		Short: "Show what changed since a snapshot, or between two",
		Long: `Show what changed since a snapshot: in the root filesystem and in the volumes of the
container as it is now, of another container, or of another snapshot.

Each line is a file, as in docker diff: A, it was added; C, its content, its type or
its time changed; D, it was deleted; M, only its mode, its owner or an xattr changed.
Directories have no times here: they follow from what is in them. Then comes what
that is together, for each volume. --format json prints a line for each change, and
no sums.

The two sides are compared place by place: a volume with the one that is mounted at
the same place. Of two snapshots, volumes are compared without reading their content.
Of a root filesystem, an image is read once; the store keeps what is known of it.
What a snapshot has left out of a volume is left out of the volume as it is now, too.

--content shows instead in what one text file differs, as diff -u does, in colours on a
terminal unless NO_COLOR is set. A file may have 1 MiB; write out larger ones with
docker snapshot cp, and compare those.

A container may be running. What it writes meanwhile may be seen or not.`,
		Example: `  docker snapshot diff web:before-upgrade
  docker snapshot diff web:before-upgrade web:latest
  docker snapshot diff --volume web-data --path '**/*.conf' web:latest
  docker snapshot diff --stat web@1h
  docker snapshot diff --content /etc/nginx/nginx.conf web:before-upgrade`,
		Args:                  cli.RequiresRangeArgs(1, 2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeDiff(d),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := errors.Join(checkPaths(o.engine.Paths), o.checkContent(cmd.Flags())); err != nil {
				return usageError(cmd, err)
			}
			return runDiff(ctx, d, o, args)
		}),
	}
	flags := cmd.Flags()
	flags.Var(opts.NewListOptsRef(&o.engine.Volumes, nil), "volume", "Compare only this volume, by its name or where it is mounted; 'rootfs' is the root filesystem")
	flags.Var(opts.NewListOptsRef(&o.engine.Paths, nil), "path", "Show only paths in the container that match, as in a .dockerignore: '/etc', '**/*.conf', '!**/*.tmp'")
	flags.BoolVar(&o.stat, "stat", false, "Show how much changed in each directory, instead of each file")
	flags.StringVar(&o.content, "content", "", "Show in what this text file in the container differs, as diff -u does")
	o.volumes.addFindingFlags(flags)
	o.printer.addFlag(flags, fileChange{}, changeCount{})
	o.progress.addFlags(flags)
	return cmd
}

func runDiff(ctx context.Context, d deps, o diffOptions, words []string) error {
	for _, word := range words {
		if err := checkSnapshot(word); err != nil {
			return err
		}
	}
	o.engine.Strict = len(o.engine.Paths) > 0
	if o.content != "" {
		return runDiffContent(ctx, d, o, words)
	}
	list := changeList{out: d.out, printer: o.printer, files: !o.stat, stat: o.stat}
	return list.fill(d, o.volumes, o.progress, func(eng engine, p plan.Progress, visit func(diff.Change)) error {
		_, err := withSnapshot(ctx, d, eng, words[0], func(word string) (struct{}, error) {
			o.engine.Old = word
			if len(words) > 1 {
				o.engine.New = words[1]
			}
			return struct{}{}, eng.Diff(ctx, o.engine, p, visit)
		})
		return err
	})
}

// completeDiff completes a snapshot, and then a snapshot or a container.
func completeDiff(d deps) cobra.CompletionFunc {
	return upTo(2, completion(func(ctx context.Context, eng engine, args []string, prefix string) ([]catalog.Candidate, error) {
		all, err := eng.References(ctx, prefix)
		if err != nil || len(args) == 0 {
			return all, err
		}
		containers, err := eng.Containers(ctx)
		return append(all, containers...), err
	}).complete(d))
}
