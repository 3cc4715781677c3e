package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
)

type verifyOptions struct {
	engine   snapshot.DrillOptions
	all      bool
	restore  bool // rehearse it
	volumes  volumeOptions
	progress progressOptions
	printer  printer
}

// verifyResult is what verify prints.
type verifyResult struct {
	Status    string          `json:"status"` // ok, damaged or incomplete
	Timestamp string          `json:"timestamp"`
	Word      string          `json:"word"`
	ID        string          `json:"id"`
	Container string          `json:"container"`
	Findings  []verifyFinding `json:"findings"`
}

// verifyFinding is one thing that is wrong.
type verifyFinding struct {
	Where   string `json:"where"`
	Text    string `json:"text"`
	Missing bool   `json:"missing"`
}

func newVerifyCommand(d deps) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [OPTIONS] [SNAPSHOT...]",
		Short: "Check whether snapshots are whole",
		Long: `Check whether snapshots are whole, and print a line for each:
  ok           everything is there, and is what it was
  damaged      something is not what it was: what, and where
  incomplete   something that it needs is not there at all

It compares the labels with this engine's seal, and looks whether the image under the
snapshot's ID is the one that was committed. It has the engine make a container of
each image, which never starts, and reads every byte that the store keeps for the
volumes: each piece is compared with its SHA-256, and each list of files with the
root in the labels. What several snapshots share is read once. The layers of images
are the engine's: it checks those itself when it loads them. The store's record of a
snapshot, which ls --lost reads, is compared with the labels, and written anew if it
is damaged.

With --quick no content is read: it looks whether all is there and has its size. With
--all, a snapshot that somebody removes meanwhile is left out.

With --restore each snapshot that is ok is restored, too: as a copy without network,
whose volumes are read and compared with what was captured, which is started if the
container ran, waited for until it is healthy or, without a healthcheck, has run for
--settle, and then removed. Bind mounts are read-only in it. What a killed drill leaves
is removed by docker snapshot recover.

Exit status 3 says that one is not ok.`,
		Example: `  docker snapshot verify web:before-upgrade
  docker snapshot verify --all
  docker snapshot verify --all --quick --format json
  docker snapshot verify --restore db:nightly`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.all {
				return cli.NoArgs(cmd, args)
			}
			return cli.RequiresMinArgs(1)(cmd, args)
		},
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeSnapshots(d, 0),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return usageError(cmd, err)
			}
			return runVerify(ctx, d, o, args)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.restore, "restore", false, "Also restore each as a copy that is compared, started and removed again")
	addWaitingFlags(flags, &o.engine.Waiting)
	flags.BoolVarP(&o.all, "all", "a", false, "Check every snapshot on the engine")
	flags.BoolVar(&o.engine.Quick, "quick", false, "Look whether all is there and has its size, and read no content")
	o.volumes.addFindingFlags(flags)
	o.printer.addFlag(flags, verifyResult{})
	o.progress.addFlags(flags)
	return cmd
}

// check refuses options that do not go together.
func (o *verifyOptions) check(flags *pflag.FlagSet) error {
	if o.restore && o.engine.Quick {
		return errors.New("conflicting options: --restore and --quick")
	}
	o.engine.Wait = o.restore
	return checkWaitingFlags(flags, o.restore, "restore")
}

// runVerify prints what was found about each snapshot, and then fails if one is not whole.
func runVerify(ctx context.Context, d deps, o verifyOptions, words []string) error {
	for _, word := range words {
		if err := checkSnapshot(word); err != nil {
			return err
		}
	}
	report, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (verify.Report, error) {
		o.engine.Words = d.nameServices(ctx, eng, words)
		if o.restore {
			return eng.Drill(ctx, o.engine, p)
		}
		return eng.Verify(ctx, o.engine.Options, p)
	})
	if err != nil {
		return err
	}
	var failures []error
	broken := 0
	for _, r := range report.Results {
		if r.Err != nil {
			failures = append(failures, o.printer.failed(d.out, r.Err))
			continue
		}
		if r.Verdict() != verify.OK {
			broken++
		}
		if err := printVerified(d, o.printer, r); err != nil {
			return err
		}
	}
	if report.More > 0 {
		failures = append(failures, writeLine(d.err, fmt.Sprintf("%d more damages are not listed", report.More)))
	}
	if broken > 0 {
		failures = append(failures, fmt.Errorf("%d of %d snapshots are not whole (%w or damaged)", broken, len(report.Results), errIncomplete))
	}
	return errors.Join(failures...)
}

// nameServices replaces words that mean no snapshot, but a service, by the service's container.
func (d deps) nameServices(ctx context.Context, eng engine, words []string) []string {
	named := slices.Clone(words)
	for i, word := range words {
		if _, err := eng.Resolve(ctx, word); !isNoSnapshot(err) {
			continue
		}
		if meant, _ := d.containerOfService(ctx, eng, word); meant != "" {
			named[i] = meant
		}
	}
	return named
}

func printVerified(d deps, how printer, r verify.Result) error {
	result := verifyResult{
		Status: string(r.Verdict()), Timestamp: rfc3339(d.clock.now()), Word: r.Word, ID: string(r.Snapshot.ID), Container: r.Snapshot.Container.Name,
		Findings: convert(r.Findings, func(f verify.Finding) verifyFinding {
			return verifyFinding{Where: f.Where, Text: f.Text, Missing: f.Missing}
		}),
	}
	name := r.Word
	if r.Snapshot.ID != "" {
		name = string(r.Snapshot.ID)
	}
	if err := how.print(d.out, name+"  "+result.Status, result); err != nil || how.formats() {
		return err
	}
	for _, f := range r.Findings {
		if err := writeLine(d.out, "  "+f.Where+": "+f.Text); err != nil {
			return err
		}
	}
	return nil
}
