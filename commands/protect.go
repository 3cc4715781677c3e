package commands

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli-plugins/metadata"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// pruneFilter keeps a prune command from what this program makes: all of it but restored containers has this label.
const pruneFilter = "label!=" + labels.KeyVersion

// protectResult is what protect prints.
type protectResult struct {
	Status        string `json:"status"`
	Timestamp     string `json:"timestamp"`
	ConfigFile    string `json:"config_file"`
	Filter        string `json:"filter"`
	Changed       bool   `json:"changed"`        // the filter was not there
	DockerVersion string `json:"docker_version"` // of docker's CLI; empty: not known
	Effective     bool   `json:"effective"`      // this CLI goes by the file
}

// minProtectingCLI is the first version of docker's CLI that goes by a filter of a missing label in its config.json. An
// older one reads the file, and prunes all the same.
const minProtectingCLI = 29

func newProtectCommand(d deps) *cobra.Command {
	var how printer
	cmd := &cobra.Command{
		Use:   "protect [OPTIONS]",
		Short: "Keep docker's prune commands from removing snapshots",
		Long: `Keep docker's prune commands from removing snapshots, and print the file that says so.

It adds the filter ` + pruneFilter + ` to pruneFilters in docker's
config.json, and leaves all else in there as it is. Then docker system prune, docker
image prune and docker volume prune of this user leave alone what this plugin has
made on an engine: snapshots, and the stores that hold what volumes held. Nobody
else's clean-ups go by that file, and neither does docker image rm.

Docker's CLI goes by the file since version 29. With an older one, give each prune
command the filter, or let an alias of your shell do so:
  docker system prune --all --filter ` + pruneFilter + `
  alias docker-prune='docker system prune --filter ` + pruneFilter + `'`,
		Example: `  docker snapshot protect
  docker snapshot protect --format '{{.ConfigFile}}'`,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return runProtect(ctx, d, how)
		}),
	}
	how.addFlag(cmd.Flags(), protectResult{})
	return cmd
}

func runProtect(ctx context.Context, d deps, how printer) error {
	path := d.settings.configFile()
	changed, err := addPruneFilter(path)
	if err != nil {
		return fmt.Errorf("protect snapshots: %s: %w", path, err)
	}
	r := protectResult{
		Status: statusProtected, Timestamp: rfc3339(d.clock.now()), ConfigFile: path, Filter: pruneFilter, Changed: changed, DockerVersion: d.cliVersion(ctx),
	}
	r.Effective = majorOf(r.DockerVersion) >= minProtectingCLI
	if err := how.print(d.out, path, r); err != nil || r.Effective {
		return err
	}
	for _, line := range []string{
		fmt.Sprintf("WARNING: docker's CLI goes by this file since version %d, and this one is %s. Until then give each prune command the filter, or an alias of your shell:", minProtectingCLI, cmp.Or(r.DockerVersion, "of a version that is not known")),
		"  docker system prune --all --filter " + pruneFilter,
		"  alias docker-prune='docker system prune --filter " + pruneFilter + "'",
	} {
		if _, err := fmt.Fprintln(d.err, line); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	return nil
}

// majorOf is the first number of a version; 0: it has none.
func majorOf(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// versionLine matches what docker --version prints.
var versionLine = regexp.MustCompile(`^Docker version ([0-9][0-9A-Za-z.+~-]*)`)

// askCLIVersion asks the docker that has started this program for its version; empty: it did not say.
func askCLIVersion(ctx context.Context) string {
	docker := cmp.Or(os.Getenv(metadata.ReexecEnvvar), "docker")
	out, err := exec.CommandContext(ctx, docker, "--version").Output() //nolint:gosec // it is what has started us
	if err != nil {
		return ""
	}
	found := versionLine.FindSubmatch(out)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// errEdited is why a change of docker's config.json is made again.
var errEdited = errors.New("somebody else changes it at the same time")

// addPruneFilter adds the filter to a config.json, in one step. It says whether it was missing.
func addPruneFilter(path string) (missing bool, err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	const attempts = 5
	for range attempts {
		before, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
		text, missing, err := withPruneFilter(before)
		if err != nil || !missing {
			return false, err
		}
		if err := replaceConfig(path, before, text); !errors.Is(err, errEdited) {
			return true, err
		}
	}
	return false, errEdited
}

// replaceConfig replaces a file, unless it is not what it was before any more. Who may read it stays.
func replaceConfig(path string, before, text []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		if err := os.Chmod(f.Name(), info.Mode().Perm()); err != nil {
			return err
		}
		keepOwner(f.Name(), info)
	}
	now, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, before) {
		return errEdited
	}
	return os.Rename(f.Name(), path)
}
