//go:build linux

package worker

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// TestPowerLoss takes snapshots, and removes some, in a store on a disk of its own. At many moments it looks at what has reached
// that disk: a machine that lost power there would find the same. The file system must repair itself, every snapshot whose
// publishing was answered before must verify, and the store must go on.
func TestPowerLoss(t *testing.T) {
	for _, tool := range []string{"mkfs.ext4", "mount", "losetup"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no disk can be made: %v", err)
		}
	}
	moments := archivetest.Number(t, "DOCKER_SNAPSHOT_TEST_MOMENTS", 200)
	seed := archivetest.Number(t, "DOCKER_SNAPSHOT_TEST_SEED", 1)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	d := newDisk(t)
	w := newWorld(t)
	w.store = d.dir
	m := machine{world: w, client: w.connect(), volume: w.volume(0), random: rand.New(rand.NewPCG(uint64(seed), 1))}
	assert.NilError(t, m.work(1)) // makes the store
	usual := time.Millisecond     // for what is done at a moment
	for n := range moments {
		done := make(chan error, 1)
		began := time.Now()
		go func() { done <- m.work(1 + n%3) }()
		time.Sleep(time.Duration(random.Int64N(int64(usual)*5/4) + 1))
		content, printed := d.cut(m.snapshots)
		t.Run(fmt.Sprintf("moment %d", n), func(t *testing.T) { checkDisk(t, content, printed, n%10 == 0) })
		assert.NilError(t, <-done)
		usual = max(min(time.Since(began), time.Second)/4+usual*3/4, time.Millisecond)
	}
	assert.Assert(t, m.removed > 0)
	t.Logf("%d snapshots taken, %d removed, %d looks repeated", m.taken, m.removed, d.repeated)
}

// disk is a small disk with a file system.
type disk struct {
	t        *testing.T
	dir      string // where it is mounted
	image    string // a file with what has reached it
	stat     string // a file with what the kernel counts of it
	repeated int
}

const (
	diskSize = 16 << 20
	keptMost = 6 // snapshots, so that it does not fill
)

func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir(), image: filepath.Join(t.TempDir(), "disk")}
	assert.NilError(t, os.WriteFile(d.image, nil, 0o600))
	assert.NilError(t, os.Truncate(d.image, diskSize))
	execute(t, "mkfs.ext4", "-q", "-b", "1024", "-J", "size=1", "-m", "0", d.image)
	mountImage(t, d.image, d.dir)
	device := strings.TrimSpace(execute(t, "losetup", "--noheadings", "--output", "NAME", "--associated", d.image))
	d.stat = filepath.Join("/sys/block", filepath.Base(device), "stat")
	return d
}

func execute(t *testing.T, name string, args ...string) string {
	t.Helper()
	var failure bytes.Buffer
	command := exec.Command(name, args...)
	command.Stderr = &failure
	out, err := command.Output()
	assert.NilError(t, err, "%s %s: %s", name, strings.Join(args, " "), failure.String())
	return string(out)
}

func mountImage(t *testing.T, image, dir string) {
	t.Helper()
	execute(t, "mount", "-o", "loop", image, dir)
	t.Cleanup(func() { execute(t, "umount", dir) })
}

// cut returns what is on the disk at one moment, and what printed returned at one before it. If something was written while it
// looked, it looks again: that would be two moments.
func (d *disk) cut(printed func() []protocol.VerifySnapshot) ([]byte, []protocol.VerifySnapshot) {
	for deadline := time.Now().Add(time.Minute); ; d.repeated++ {
		before, list := d.writes(), printed()
		content, err := os.ReadFile(d.image)
		assert.NilError(d.t, err)
		if d.writes() == before {
			return content, list
		}
		assert.Assert(d.t, time.Now().Before(deadline), "the disk is never at rest")
	}
}

// writes is how many writes, and sectors, have been written since the disk is there.
func (d *disk) writes() string {
	text, err := os.ReadFile(d.stat)
	assert.NilError(d.t, err)
	fields := strings.Fields(string(text))
	return fields[4] + " " + fields[6]
}

// checkDisk mounts a disk with that content, and verifies the snapshots in its store. goesOn takes one more.
func checkDisk(t *testing.T, content []byte, printed []protocol.VerifySnapshot, goesOn bool) {
	// Always a new file: a loop device that is used again may still show what its former file held.
	image := filepath.Join(memory(t), "disk")
	assert.NilError(t, os.WriteFile(image, content, 0o600))
	w := newWorld(t)
	mountImage(t, image, w.store)
	c := w.connect()
	found, err := c.Verify(t.Context(), protocol.VerifyRequest{Snapshots: printed}, nil)
	assert.NilError(t, err)
	assert.Equal(t, found.Snapshots, len(printed))
	assert.Equal(t, len(found.Damages), 0, "%+v", found.Damages)
	if goesOn {
		m := machine{world: w, client: c, volume: w.volume(0), taken: 1_000_000, random: rand.New(rand.NewPCG(0, 0))}
		assert.NilError(t, m.work(2))
		found, err = c.Verify(t.Context(), protocol.VerifyRequest{Snapshots: append(printed, m.snapshots()...)}, nil)
		assert.NilError(t, err)
		assert.Equal(t, len(found.Damages), 0, "%+v", found.Damages)
	}
}

// memory returns a new folder in memory, where syncing costs nothing; elsewhere if there is none.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "disk-") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { assert.NilError(t, os.RemoveAll(dir)) })
	return dir
}

// machine takes snapshots of a volume, and removes the oldest ones.
type machine struct {
	*world

	client         *protocol.Client
	volume         string
	random         *rand.Rand
	taken, removed int

	mu      sync.Mutex
	printed []protocol.VerifySnapshot
}

// snapshots are those that users have been told of, and have not removed, oldest first.
func (m *machine) snapshots() []protocol.VerifySnapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]protocol.VerifySnapshot(nil), m.printed...)
}

// work takes so many snapshots.
func (m *machine) work(count int) error {
	for range count {
		for range 4 { // files change, and some not, so that archives refer to packs of earlier ones
			name := filepath.Join(m.volume, fmt.Sprint(m.random.IntN(12)))
			if err := os.WriteFile(name, archivetest.Random(m.random.Uint64(), 1+m.random.IntN(20_000)), 0o600); err != nil {
				return err
			}
		}
		if err := m.take(fmt.Sprintf("s%d", m.taken)); err != nil {
			return err
		}
		m.taken++
		if len(m.snapshots()) > keptMost {
			if err := m.removeOldest(); err != nil {
				return err
			}
		}
	}
	return nil
}

// origin is where these snapshots are from.
var origin = protocol.PublishRequest{Engine: "engine", ImageStore: "overlay2", Container: strings.Repeat("a", 64), ContainerName: "web"} //nolint:mnd // digits of an ID

func (m *machine) take(id string) error {
	ctx := m.t.Context()
	if err := m.client.Begin(ctx, protocol.BeginRequest{Snapshot: id, Mounts: []protocol.Mount{{Key: "data"}}}, nil); err != nil {
		return err
	}
	for _, mode := range []protocol.Mode{protocol.Live, protocol.Frozen} {
		if _, err := m.client.Pass(ctx, mode, nil); err != nil {
			return err
		}
	}
	result, err := m.client.Publish(ctx, origin, nil)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.printed = append(m.printed, protocol.VerifySnapshot{Snapshot: id, Roots: map[int]string{0: result.Archives[0].Root}})
	return nil
}

func (m *machine) removeOldest() error {
	m.mu.Lock()
	gone := m.printed[0]
	m.printed = m.printed[1:]
	m.mu.Unlock()
	result, err := m.client.Remove(m.t.Context(), protocol.RemoveRequest{Snapshots: []protocol.Claim{
		{Snapshot: gone.Snapshot, Container: origin.Container, ContainerName: origin.ContainerName, Roots: gone.Roots},
	}}, nil)
	if err == nil && len(result.Removed) != 1 {
		err = fmt.Errorf("removed %q, foreign %q", result.Removed, result.Foreign)
	}
	m.removed++
	return err
}
