package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// toStdout is the destination that means a tar on stdout.
const toStdout = "-"

type cpOptions struct {
	follow   bool
	volumes  volumeOptions
	progress progressOptions
}

func newCpCommand(d deps) *cobra.Command {
	var o cpOptions
	cmd := &cobra.Command{
		Use:   "cp [OPTIONS] SNAPSHOT[:VOLUME]:PATH DEST|-",
		Short: "Copy files out of a snapshot",
		Long: `Copy files and directories out of a snapshot to this machine, or as a tar to stdout.
Nothing is restored, and no container is touched.

PATH begins with a slash. It is a path in the container: below the place where a volume
is mounted it is a file of that volume. After the name of a VOLUME, or the place where it
is mounted, it is a path in that volume.

DEST is as in docker cp. A directory that is there gets the file or directory; with '/.'
at the end of PATH, what is in that. Otherwise DEST is the new name, or the file that is
replaced. A slash at the end of DEST says that it is a directory.

Content, times, modes, links and holes are kept, and extended attributes as far as the
system allows. Owners and devices are kept if root copies. What is wrong is not written in
silence: every piece is checked, and the list of a volume's files at the end.

Symlinks on the way of PATH lead where they lead in the container, also from the root
filesystem into a volume and back. A symlink at the end of PATH is copied as such; with
--follow-link, or a slash at the end of PATH, what it leads to. What is mounted below a
directory is not copied along, and named: copy it by itself.`,
		Example: `  docker snapshot cp web:before-upgrade:/etc/nginx/nginx.conf .
  docker snapshot cp db:latest:/var/lib/postgresql/data/. rescued
  docker snapshot cp db:latest:db-data:/base - | tar tv`,
		Args:                  cli.ExactArgs(2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeCp(d),
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return runCp(ctx, d, o, args[0], args[1])
		}),
	}
	cmd.Flags().BoolVarP(&o.follow, "follow-link", "L", false, "Copy what a symlink at the end of PATH leads to")
	o.volumes.addFindingFlags(cmd.Flags())
	o.progress.addFlags(cmd.Flags())
	return cmd
}

func runCp(ctx context.Context, d deps, o cpOptions, word, destination string) error {
	head, path, found := cutPath(word)
	if !found {
		return wrongArgument{fmt.Errorf("invalid source %q: name a path that begins with a slash, as in web:latest:/etc/hosts", word)}
	}
	if err := checkSnapshot(head); err != nil {
		return err
	}
	if destination == "" {
		return wrongArgument{errors.New("the destination is empty: name a file or a directory, or - for stdout")}
	}
	if destination == toStdout && d.out.IsTerminal() {
		return wrongArgument{errors.New("a tar is not for a terminal: redirect stdout, or name a destination")}
	}
	_, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (struct{}, error) {
		source, err := findSource(ctx, d, eng, head)
		if err != nil {
			return struct{}{}, err
		}
		source.Path, source.Follow = path, o.follow
		if destination == toStdout {
			return struct{}{}, eng.ExtractTar(ctx, source, d.out.content(), p)
		}
		return struct{}{}, eng.Extract(ctx, source, destination, p)
	})
	return err
}

// cutPath takes the path from a source: what begins with the first slash after a colon.
func cutPath(word string) (head, path string, found bool) {
	at := strings.Index(word, ":/")
	if at < 0 {
		return "", "", false
	}
	return word[:at], word[at+1:], true
}

// findSource finds what stands before a path: a snapshot, or one and its volume. If it can be both, it is a snapshot.
func findSource(ctx context.Context, d deps, eng engine, head string) (extract.Source, error) {
	s, err := d.resolve(ctx, eng, head)
	if err == nil {
		return extract.Source{Snapshot: s}, nil
	}
	at := strings.LastIndexByte(head, ':')
	if _, none := errors.AsType[*catalog.NotFoundError](err); !none || at < 0 {
		return extract.Source{}, err
	}
	s, otherErr := d.resolve(ctx, eng, head[:at])
	if otherErr != nil || !extract.HasVolume(s, head[at+1:]) {
		return extract.Source{}, err
	}
	return extract.Source{Snapshot: s, Volume: head[at+1:]}, nil
}

// completeCp completes a snapshot, then a path in it, and leaves the destination to the shell.
func completeCp(d deps) cobra.CompletionFunc {
	snapshots := completion(func(ctx context.Context, eng engine, _ []string, prefix string) ([]catalog.Candidate, error) {
		all, err := eng.References(ctx, prefix)
		return convert(all, func(c catalog.Candidate) catalog.Candidate {
			return catalog.Candidate{Word: c.Word + ":/", About: c.About}
		}), err
	}).complete(d)
	paths := completion(func(ctx context.Context, eng engine, _ []string, prefix string) ([]catalog.Candidate, error) {
		return pathsWith(ctx, d, eng, prefix)
	}).complete(d)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		complete := paths
		switch _, _, hasPath := cutPath(prefix); {
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveDefault
		case !hasPath:
			complete = snapshots
		}
		words, directive := complete(cmd, args, prefix)
		return words, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// pathsWith are the paths in a snapshot that begin with a word. Those that no word can express are left out.
func pathsWith(ctx context.Context, d deps, eng engine, prefix string) ([]catalog.Candidate, error) {
	head, path, _ := cutPath(prefix)
	source, err := findSource(ctx, d, eng, head)
	if err != nil {
		return nil, err
	}
	at := strings.LastIndexByte(path, '/') + 1
	source.Path = path[:at]
	children, err := eng.Children(ctx, source)
	if err != nil {
		return nil, err
	}
	var all []catalog.Candidate
	for _, c := range children {
		if !strings.HasPrefix(c.Name, path[at:]) || oneLine(c.Name) != c.Name {
			continue
		}
		word := head + ":" + path[:at] + c.Name
		if c.IsDirectory {
			word += "/"
		}
		all = append(all, catalog.Candidate{Word: word})
	}
	return all, nil
}
