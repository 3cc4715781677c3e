// Package commands is the command line: each file turns the flags of one
// command into a call of the engine, and its result into output. Package snapshot
// does the work.
//
// stdout carries the result and nothing else; progress and warnings go to
// stderr.
package commands

import (
	"context"
	"io"
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
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/history"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runs"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
	"github.com/cua-snapshot/docker-snapshot/snapshot/watch"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Name is the name of the command under docker, and of the plugin.
const Name = "snapshot"

// engine is what the commands need of [snapshot.Engine].
type engine interface {
	snapshots
	together
	copying
	contents
	upkeep
	surroundings
	runKeeper
	watching
	tracing
}

// snapshots is the part about snapshots themselves.
type snapshots interface {
	Create(ctx context.Context, o capture.Options, p plan.Progress) (capture.Created, error)
	List(ctx context.Context, o catalog.ListOptions, p plan.Progress) ([]catalog.Snapshot, error)
	Lost(ctx context.Context, o catalog.ListOptions, p plan.Progress) ([]archives.Lost, error)
	Resolve(ctx context.Context, word string) (catalog.Snapshot, error)
	Remove(ctx context.Context, words []string, o removal.Options, p plan.Progress) []removal.Removal
	Prune(ctx context.Context, o removal.PruneOptions, p plan.Progress) (removal.Pruned, error)
	Outlook(ctx context.Context, o removal.OutlookOptions, p plan.Progress) (removal.Outlook, error)
	Replace(ctx context.Context, o replace.Options, p plan.Progress) (replace.Result, error)
	Annotate(ctx context.Context, a capture.Annotation, p plan.Progress) (catalog.Snapshot, error)
}

// together is the part about several containers, of which all are done or none.
type together interface {
	CreateTogether(ctx context.Context, all []capture.Options, p plan.Progress) ([]capture.Created, error)
	ReplaceTogether(ctx context.Context, all []replace.Options, p plan.Progress) ([]replace.Result, error)
	FindUndo(ctx context.Context, container string) ([]replace.Options, error)
}

// contents is the part about what snapshots hold.
type contents interface {
	Entries(ctx context.Context, s catalog.Snapshot, m labels.Mount, detail archives.Detail, visit func(volumebackup.Entry)) error
	RootEntries(ctx context.Context, s catalog.Snapshot, detail archives.Detail, visit func(volumebackup.Entry)) error
	Diff(ctx context.Context, o diff.Options, p plan.Progress, visit func(diff.Change)) error
	Attachment(ctx context.Context, s catalog.Snapshot, name string, out io.Writer) error
	ReadFile(ctx context.Context, source extract.Source, p plan.Progress) ([]byte, error)
	Contents(ctx context.Context, o diff.Options, path string, p plan.Progress) (before, after extract.File, err error)
	Extract(ctx context.Context, source extract.Source, destination string, p plan.Progress) error
	Children(ctx context.Context, source extract.Source) ([]extract.Child, error)
	ExtractTar(ctx context.Context, source extract.Source, out io.Writer, p plan.Progress) error
}

// copying is the part about copies.
type copying interface {
	Restore(ctx context.Context, o runconfig.RestoreOptions, p plan.Progress) (build.Restored, error)
	Fork(ctx context.Context, o copies.ForkOptions, p plan.Progress) ([]build.Restored, error)
	RemoveCopies(ctx context.Context, words []string, force bool, p plan.Progress) []copies.Removed
}

// upkeep is the part that puts things right, and cleans up.
type upkeep interface {
	Sweep(ctx context.Context, p plan.Progress)
	Verify(ctx context.Context, o verify.Options, p plan.Progress) (verify.Report, error)
	Drill(ctx context.Context, o snapshot.DrillOptions, p plan.Progress) (verify.Report, error)
	Recover(ctx context.Context, container string, p plan.Progress) ([]replace.Recovery, error)
	FindPurgeable(ctx context.Context, p plan.Progress) (all []removal.Purgeable, kept []string, err error)
	Purge(ctx context.Context, all []removal.Purgeable, p plan.Progress) ([]removal.Purgeable, error)
	Settle(ctx context.Context, container string, p plan.Progress) error
	Thaw(ctx context.Context, containers []string) error
	KeepLast(ctx context.Context, line string, most int, p plan.Progress) error
	EndHook(ctx context.Context, x dockerop.Exec) error
}

// runKeeper is the part about runs, and what is known of them.
type runKeeper interface {
	Run(ctx context.Context, o runs.Options, command runs.Command, p plan.Progress) (runs.Result, error)
	Around(ctx context.Context, o runs.ActionOptions, action runs.Action, p plan.Progress) error
	Sessions(ctx context.Context) ([]session.Session, error)
	Session(ctx context.Context, runID string) (session.Session, error)
	RemoveSession(ctx context.Context, runID string) error
	AnnotateSession(ctx context.Context, runID string, networkEvents []byte) error
}

// watching is the part that goes on by itself.
type watching interface {
	Watch(ctx context.Context, o snapshot.WatchOptions, tell watch.Tell) error
}

// tracing is the part that tells what became of snapshots.
type tracing interface {
	RestoresOf(ctx context.Context, s catalog.Snapshot) ([]catalog.Restore, error)
	History(ctx context.Context, o catalog.ListOptions, p plan.Progress) (history.History, error)
}

// surroundings is the part that lists what exists, mostly for completion.
type surroundings interface {
	Containers(ctx context.Context) ([]catalog.Candidate, error)
	Undoable(ctx context.Context) ([]catalog.Candidate, error)
	VolumeNames(ctx context.Context, mountedBy string) ([]catalog.Candidate, error)
	Stores(ctx context.Context) ([]catalog.Candidate, error)
	NetworkNames(ctx context.Context) ([]catalog.Candidate, error)
	TakenWith(ctx context.Context, s catalog.Snapshot) ([]catalog.Snapshot, error)
	References(ctx context.Context, prefix string) ([]catalog.Candidate, error)
	CountAtTimes(ctx context.Context, container string) (count snapshot.Count, counted bool, err error)
	Services(ctx context.Context, name string) ([]catalog.Service, error)
	FormerServices(ctx context.Context, name string) ([]catalog.Service, error)
}

var _ engine = (*snapshot.Engine)(nil)

// deps is all that a command may touch.
type deps struct {
	in       *streams.In
	out, err terminal
	engine   func(volumeOptions) (engine, error) // dials; --help must not
	global   []string                            // docker's own options, as they were given
	// arguments are all that the program was started with, without its own name.
	arguments []string
	settings  settings
	// directory is the current one: Compose's project is known by it.
	directory string
	clock     clock
	tidy      tidier
	// cliVersion is the version of the docker that has started this program; empty: not known.
	cliVersion func(context.Context) string
	version    string
	// execute executes a command in a container, as docker exec does.
	execute func(ctx context.Context, container string, e execution) (status int, err error)
}

// NewRoot returns the command tree below "docker". version is the plugin's own;
// global are docker's own options, as they were given, and arguments all that the program was started with.
func NewRoot(dockerCLI command.Cli, version string, global, arguments []string) *cobra.Command {
	settings := newSettings(dockerCLI, os.LookupEnv)
	directory, _ := os.Getwd() // without one there is no project in it
	return newRoot(deps{
		in:        dockerCLI.In(),
		out:       terminal{dockerCLI.Out()},
		err:       terminal{dockerCLI.Err()},
		global:    global,
		arguments: arguments,
		settings:  settings,
		engine: func(volumes volumeOptions) (engine, error) {
			config, err := volumes.config(settings)
			if err != nil {
				return nil, err
			}
			config.Plugin = version
			return connect(dockerCLI, global, config, volumes.store != "")
		},
		directory:  directory,
		clock:      clock{now: time.Now, after: afterFunc}, //nolint:forbidigo // this is where the clock comes from
		tidy:       newTidier(global),
		cliVersion: askCLIVersion,
		version:    version,
		execute:    executor{dockerCLI}.execute,
	})
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
	root.SetFlagErrorFunc(d.reportFlagError)
	root.AddCommand(commandsBelow(d)...)
	root.Flags().BoolVar(&version, "version", false, "Show the version of this plugin")
	checkArguments(root)
	completeFlags(root, d)
	d.reportFailures(root)
	return root
}

// commandsBelow are the commands of the program, in the order of its help.
func commandsBelow(d deps) []*cobra.Command {
	return []*cobra.Command{
		newCreateCommand(d),
		newRestoreCommand(d),
		newForkCommand(d),
		newPromoteCommand(d),
		newUndoCommand(d),
		newListCommand(d),
		newInspectCommand(d),
		newHistoryCommand(d),
		newRemoveCommand(d),
		newRunCommand(d),
		newExecCommand(d),
		newRunsCommand(d),
		newDiffCommand(d),
		newCatCommand(d),
		newCpCommand(d),
		newVerifyCommand(d),
		newSpaceCommand(d),
		newPruneCommand(d),
		newAnnotateCommand(d),
		newRecoverCommand(d),
		newProtectCommand(d),
		newWatchCommand(d),
		newMCPCommand(d),
		newVersionCommand(d),
		newGuardCommand(d),
		newTidyCommand(d),
	}
}
