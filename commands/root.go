// Package commands is the command line: each file turns the flags of one
// command into a call of the engine, and its result into output. Package snapshot
// does the work.
//
// stdout carries the result and nothing else; progress and warnings go to
// stderr.
package commands

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/command"
	"github.com/docker/cli/cli/streams"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Name is the name of the command under docker, and of the plugin.
const Name = "snapshot"

// engine is what the commands need of [snapshot.Engine].
type engine interface {
	snapshots
	upkeep
	surroundings
}

// snapshots is the part about snapshots themselves.
type snapshots interface {
	Create(ctx context.Context, o capture.Options, p plan.Progress) (capture.Created, error)
	Restore(ctx context.Context, o runconfig.RestoreOptions, p plan.Progress) (build.Restored, error)
	List(ctx context.Context, o catalog.ListOptions, p plan.Progress) ([]catalog.Snapshot, error)
	Resolve(ctx context.Context, word string) (catalog.Snapshot, error)
	Remove(ctx context.Context, words []string, o removal.Options, p plan.Progress) []removal.Removal
	Replace(ctx context.Context, o replace.Options, p plan.Progress) (replace.Result, error)
	Entries(ctx context.Context, s catalog.Snapshot, m labels.Mount, visit func(volumebackup.Entry)) error
}

// upkeep is the part that puts things right, and cleans up.
type upkeep interface {
	Sweep(ctx context.Context, p plan.Progress)
	Recover(ctx context.Context, container string, p plan.Progress) ([]replace.Recovery, error)
	FindPurgeable(ctx context.Context, p plan.Progress) (all []removal.Purgeable, kept []string, err error)
	Purge(ctx context.Context, all []removal.Purgeable, p plan.Progress) ([]removal.Purgeable, error)
	Settle(ctx context.Context, container string, p plan.Progress) error
	Thaw(ctx context.Context, containers []string) error
}

// surroundings is the part that lists what exists, mostly for completion.
type surroundings interface {
	Containers(ctx context.Context) ([]catalog.Candidate, error)
	VolumeNames(ctx context.Context, mountedBy string) ([]catalog.Candidate, error)
	Stores(ctx context.Context) ([]catalog.Candidate, error)
	NetworkNames(ctx context.Context) ([]catalog.Candidate, error)
	References(ctx context.Context, prefix string) ([]catalog.Candidate, error)
	Services(ctx context.Context, name string) ([]catalog.Service, error)
}

var _ engine = (*snapshot.Engine)(nil)

// deps is all that a command may touch.
type deps struct {
	in       *streams.In
	out, err terminal
	engine   func(volumeOptions) (engine, error) // dials; --help must not
	global   []string                            // docker's own options, as they were given
	settings settings
	// directory is the current one: Compose's project is known by it.
	directory string
	clock     clock
	version   string
}

// NewRoot returns the command tree below "docker". version is the plugin's own;
// global are docker's own options, as they were given.
func NewRoot(dockerCLI command.Cli, version string, global []string) *cobra.Command {
	settings := newSettings(dockerCLI, os.LookupEnv)
	directory, _ := os.Getwd() // without one there is no project in it
	return newRoot(deps{
		in:       dockerCLI.In(),
		out:      terminal{dockerCLI.Out()},
		err:      terminal{dockerCLI.Err()},
		global:   global,
		settings: settings,
		engine: func(volumes volumeOptions) (engine, error) {
			config, err := volumes.config(settings)
			if err != nil {
				return nil, err
			}
			config.Plugin = version
			return connect(dockerCLI, global, config, volumes.store != "")
		},
		directory: directory,
		clock:     clock{now: time.Now, after: afterFunc}, //nolint:forbidigo // this is where the clock comes from
		version:   version,
	})
}

// connect returns the engine that the CLI's context points at. Only it may ask the CLI
// for a client: that ends the program if the context cannot be resolved. So connect
// resolves the context first, and reports a failure like any other.
func connect(dockerCLI command.Cli, global []string, volumes volumebackup.Config, isGiven bool) (engine, error) {
	if _, err := dockerCLI.ContextStore().GetMetadata(dockerCLI.CurrentContext()); err != nil {
		return nil, fmt.Errorf("unable to resolve docker endpoint: %w", err)
	}
	docker := dockerCLI.Client()
	var options []snapshot.Option
	if isGiven {
		options = append(options, snapshot.WithGivenStore())
	}
	return snapshot.New(docker, archives.Of(volumebackup.New(docker, volumes)), newGuard(global), options...), nil
}

// newRoot returns the tree. It defines no PersistentPreRun: cobra would run it
// instead of the one in which the CLI's plugin package connects everything.
func newRoot(d deps) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   Name + " [OPTIONS] COMMAND",
		Short: "Take snapshots of containers and bring them back",
		Long: `Take snapshots of containers and bring them back: filesystem, volumes and
the whole run configuration.

Exit status:
  0      done
  1      an error
  3      made, but something that should be in it is not
  125    wrong options or arguments
  130    interrupted (SIGINT); 143 after SIGTERM, 129 after SIGHUP

Settings, in plugins.snapshot of docker's config.json. An environment variable
overrides them, and an option overrides both:
` + settingsHelp(),
		Example: `  docker snapshot create web before-upgrade
  docker snapshot ls web
  docker snapshot restore web:before-upgrade`,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return newVersions(d).print(d, printer{})
			}
			return command.ShowHelp(d.err)(cmd, args)
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newCreateCommand(d),
		newRestoreCommand(d),
		newListCommand(d),
		newInspectCommand(d),
		newRemoveCommand(d),
		newRecoverCommand(d),
		newVersionCommand(d),
		newGuardCommand(d),
	)
	root.Flags().BoolVar(&version, "version", false, "Show the version of this plugin")
	checkArguments(root)
	completeFlags(root, d)
	return root
}
