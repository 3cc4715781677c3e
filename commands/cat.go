package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/docker/cli/cli"
	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

type catOptions struct {
	output  string // empty: stdout
	printer printer
	volumes volumeOptions
}

// catResult is what cat prints of a file that it has written.
type catResult struct {
	Status    string `json:"status"`
	Timestamp string `json:"timestamp"`
	ID        string `json:"id"`
	attachmentDetails
	File string `json:"file"`
}

func newCatCommand(d deps) *cobra.Command {
	var o catOptions
	cmd := &cobra.Command{
		Use:   "cat [OPTIONS] SNAPSHOT NAME",
		Short: "Write an attachment of a snapshot to stdout",
		Long: `Write an attachment of a snapshot to stdout, as it was given to create --attach, or
with --output to a file.

Its SHA-256 is checked while it is written. If it is not the one that the snapshot has
recorded, that is an error, and what was written to stdout is not to be trusted. A file
has all of it, or is as it was.

--format says what to print of a file that was written. It needs --output: otherwise
stdout has the attachment itself.`,
		Example: `  docker snapshot cat web:before-upgrade notes.json
  docker snapshot cat chat:latest messages.json | jq .
  docker snapshot cat --output notes.json --format json web:before-upgrade notes.json`,
		Args:                  cli.ExactArgs(2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeAttachments(d),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if o.printer.formats() && o.output == "" {
				return usageError(cmd, errors.New("--format needs --output: without it stdout has the attachment itself"))
			}
			return runCat(ctx, d, o, args[0], args[1])
		}),
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Write to this file, in one step, instead of stdout")
	o.printer.addFlag(cmd.Flags(), catResult{})
	o.volumes.addFindingFlags(cmd.Flags())
	return cmd
}

func runCat(ctx context.Context, d deps, o catOptions, word, name string) error {
	if err := checkSnapshot(word); err != nil {
		return err
	}
	eng, err := d.engine(o.volumes)
	if err != nil {
		return err
	}
	s, err := d.resolve(ctx, eng, word)
	if err != nil {
		return err
	}
	if o.output == "" {
		return eng.Attachment(ctx, s, name, d.out.content())
	}
	err = writeWhole(o.output, func(file io.Writer) error { return eng.Attachment(ctx, s, name, file) })
	if err != nil || !o.printer.formats() {
		return err
	}
	about, _ := s.Attachment(name) // it was written, so it is there
	return o.printer.print(d.out, "", catResult{
		Status: statusWritten, Timestamp: rfc3339(d.clock.now()), ID: string(s.ID), attachmentDetails: newAttachmentDetails(about), File: o.output,
	})
}

// completeAttachments completes a snapshot, and then the name of one of its attachments.
func completeAttachments(d deps) cobra.CompletionFunc {
	return upTo(2, completion(func(ctx context.Context, eng engine, args []string, prefix string) ([]catalog.Candidate, error) {
		if len(args) == 0 {
			return eng.References(ctx, prefix)
		}
		s, err := eng.Resolve(ctx, args[0])
		if err != nil {
			return nil, err
		}
		var names []catalog.Candidate
		for _, a := range s.Attachments {
			if strings.HasPrefix(a.Name, prefix) {
				names = append(names, catalog.Candidate{Word: a.Name, About: fmt.Sprintf("%s, %s", units.HumanSize(float64(a.Bytes)), a.MediaType)})
			}
		}
		return names, nil
	}).complete(d))
}
