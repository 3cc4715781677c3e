//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"
)

// pictured is what a restore that is rolled back leaves as it was.
type pictured struct {
	ID         string `json:"Id"`
	Name       string
	State      struct{ Status string }
	HostConfig struct{ RestartPolicy any }
	Mounts     []struct {
		Type, Name, Destination, Source string
	}
	NetworkSettings struct {
		Networks map[string]struct{ IPAMConfig, Aliases any }
	}
}

func cmdPicture(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "picture CONTAINER")
	picture, err := takePicture(scriptDocker(ts), args[0])
	ts.Check(err)
	fmt.Fprint(ts.Stdout(), picture)
}

// takePicture describes a container with its volumes, for comparison. It asks through docker or scriptDocker.
func takePicture(ask func(args ...string) (string, error), container string) (string, error) {
	out, err := ask("inspect", "--type", "container", container)
	if err != nil {
		return "", err
	}
	var found []pictured
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return "", err
	}
	c := found[0]
	slices.SortFunc(c.Mounts, func(a, b struct{ Type, Name, Destination, Source string }) int {
		return bytes.Compare([]byte(a.Destination), []byte(b.Destination))
	})
	described, err := json.MarshalIndent(c, "", "\t")
	if err != nil {
		return "", err
	}
	text := string(described) + "\n"
	for _, m := range c.Mounts {
		if m.Type == "volume" {
			entries, err := describeTree(m.Source)
			if err != nil {
				return "", err
			}
			text += m.Destination + "\n" + entries
		}
	}
	return text, nil
}

// describeTree lists every entry below a directory, with all attributes that a volume keeps. Of the blocks that a file
// occupies it says only whether they are too few for its size, as with holes: filesystems may take one more for the same bytes.
func describeTree(dir string) (string, error) {
	list := exec.Command("sh", "-euc", `
		find . -printf '%b %s %p %y %m %U %G %n %T@ %l\n' | awk '{ $1 = $1 * 512 < $2 ? "holes" : "whole"; print }' | sort
		find . -type f -exec sha256sum {} + | sort -k 2`)
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("list %s: %w: %s", dir, err, stderrOf(err))
	}
	return string(out), nil
}
