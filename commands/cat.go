package commands

import (
	"context"
	"fmt"
	"strings"

	"github.com/docker/cli/cli"
	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

func newCatCommand(d deps) *cobra.Command {
	var volumes volumeOptions
	cmd := &cobra.Command{
		Use:   "cat [OPTIONS] SNAPSHOT NAME",
		Short: "Write an attachment of a snapshot to stdout",
		Long: `Write an attachment of a snapshot to stdout, as it was given to create --attach.

Its SHA-256 is checked while it is written. If it is not the one that the snapshot has
recorded, that is an error, and what was written is not to be trusted.`,
		Example: `  docker snapshot cat web:before-upgrade notes.json
  docker snapshot cat chat:latest messages.json | jq .`,
		Args:                  cli.ExactArgs(2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeAttachments(d),
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return runCat(ctx, d, volumes, args[0], args[1])
		}),
	}
	volumes.addFindingFlags(cmd.Flags())
	return cmd
}

func runCat(ctx context.Context, d deps, volumes volumeOptions, word, name string) error {
	if err := checkSnapshot(word); err != nil {
		return err
	}
	eng, err := d.engine(volumes)
	if err != nil {
		return err
	}
	s, err := d.resolve(ctx, eng, word)
	if err != nil {
		return err
	}
	return eng.Attachment(ctx, s, name, d.out.content())
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
