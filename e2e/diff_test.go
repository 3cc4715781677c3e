//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// pairsInLine is how many pairs follow each other, each in a container of the image of the one before.
const pairsInLine = 5

// TestDiffAgreesWithDiffAndStat compares random pairs of trees, each in a volume and in a root filesystem: two snapshots,
// and a snapshot and the container as it is. What it finds must be what diff -r --no-dereference and lstat find. All that is
// deleted in a root filesystem was in a lower layer: so there are whiteouts, and directories that hide others of their name.
func TestDiffAgreesWithDiffAndStat(t *testing.T) {
	pairs := rounds()
	if text, given := os.LookupEnv("E2E_DIFF_PAIRS"); given {
		var err error
		pairs, err = strconv.Atoi(text)
		assert.NilError(t, err)
	}
	p := diffTest{volumesTest{t, ownPrefix(t, "diff")}}
	found := 0
	for seed := range pairs {
		r := rand.New(rand.NewPCG(uint64(seed), 12))
		before, after := fmt.Sprint("n", seed), fmt.Sprint("n", seed+1)
		if seed%pairsInLine == 0 {
			p.begin(r, before)
		}
		p.again(before)
		volume, root := p.trees()
		beforeVolume, beforeRoot := p.copyOf(volume), p.copyOf(root)
		for range 1 + r.IntN(20) {
			archivetest.ChangePair(t, volume, r, true)
			archivetest.ChangePair(t, root, r, false) // an engine loses xattrs of users
		}
		wantVolume, wantRoot := archivetest.Differences(t, beforeVolume, volume), archivetest.Differences(t, beforeRoot, root)
		found += len(wantVolume) + len(wantRoot)
		p.check(seed, "since", wantVolume, wantRoot, p.prefix+"-web:"+before)
		p.create(after)
		p.check(seed, "between", wantVolume, wantRoot, p.prefix+"-web:"+before, p.prefix+"-web:"+after)
	}
	t.Logf("%d pairs with %d changes", pairs, found)
	assert.Assert(t, found > pairs)
}

type diffTest struct{ volumesTest }

// begin makes a container with random trees, and takes a snapshot of it.
func (p diffTest) begin(r *rand.Rand, name string) {
	p.Helper()
	if _, err := docker("inspect", p.prefix+"-web"); err == nil {
		p.docker("rm", "--force", p.prefix+"-web")
		p.docker("volume", "rm", p.prefix+"-data")
	}
	p.run("busybox")
	p.docker("exec", p.prefix+"-web", "mkdir", "/tree")
	volume, root := p.trees()
	archivetest.FillPair(p, volume, r)
	archivetest.FillPair(p, root, r)
	p.docker("snapshot", "create", "--quiet", "--reuse", "--store", p.prefix+"-store", p.prefix+"-web", name)
}

// again runs the container anew, from the image of a snapshot.
func (p diffTest) again(name string) {
	p.Helper()
	p.docker("rm", "--force", p.prefix+"-web")
	p.run("cua-snapshot/" + p.prefix + "-web:" + name)
}

func (p diffTest) run(image string) {
	p.Helper()
	p.docker("run", "--detach", "--name", p.prefix+"-web", "--network", "none", "--volume", p.prefix+"-data:/data", image, "sleep", "1000")
}

// trees are the volume and the tree in the root filesystem, on this machine.
func (p diffTest) trees() (volume, root string) {
	p.Helper()
	pid := strings.TrimSpace(p.docker("inspect", "--format", "{{.State.Pid}}", p.prefix+"-web"))
	return p.directories(p.prefix + "-web")["/data"], "/proc/" + pid + "/root/tree"
}

func (p diffTest) copyOf(dir string) string {
	p.Helper()
	to := filepath.Join(p.TempDir(), "before")
	assert.NilError(p, exec.Command("cp", "-a", dir, to).Run())
	return to
}

// check compares what docker snapshot diff says of two sides with what it must say.
func (p diffTest) check(seed int, what string, volume, root []changes.Change, sides ...string) {
	p.Helper()
	out := p.docker(append([]string{"snapshot", "diff", "--quiet", "--format", "json"}, sides...)...)
	got := map[string][]changes.Change{"/": {}, "/data": {}}
	for line := range strings.Lines(out) {
		var c struct {
			Destination, Path string
			ChangeType        changes.Type `json:"change_type"`
			SizeDelta         int64        `json:"size_delta"`
		}
		assert.NilError(p, json.Unmarshal([]byte(line), &c))
		if c.Destination == "/" {
			path, ok := strings.CutPrefix("/"+c.Path, "/tree")
			assert.Assert(p, ok, "%s", line)
			c.Path = strings.TrimPrefix(path, "/")
		}
		got[c.Destination] = append(got[c.Destination], changes.Change{Path: c.Path, Type: c.ChangeType, SizeDelta: c.SizeDelta})
	}
	assert.DeepEqual(p, got["/data"], relativePaths(volume))
	assert.DeepEqual(p, got["/"], relativePaths(root))
	if p.Failed() {
		p.Fatalf("pair %d, %s", seed, what)
	}
}

func relativePaths(all []changes.Change) []changes.Change {
	for i := range all {
		all[i].Path = strings.TrimPrefix(all[i].Path, "/")
	}
	return all
}
