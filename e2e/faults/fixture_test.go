//go:build e2e

package faults

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"
)

// commandTimeout is how long a command may take, whatever happens to one request of it.
const commandTimeout = 2 * time.Minute

// lockTimeout is how long each command waits for others: its --lock-timeout. One that nothing happens to takes no longer.
const lockTimeout = time.Minute

// fixture is what one cell works on: everything has names that begin with its prefix.
type fixture struct {
	*testing.T
	prefix     string
	policy     container.RestartPolicyMode // of its containers
	containers map[string]string           // IDs by name
	states     map[string]string           // of the containers, before the command
	subjects   []string                    // names of the containers of which there are snapshots
	snapshots  map[string]string           // IDs by name
	contents   map[string]content          // of all captured volumes, by snapshot ID
	before     content                     // of all captured volumes before the command
	listing    []string                    // what ls has shown; nil after any other command
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{
		T: t, prefix: fmt.Sprintf("f%08x-", rand.Uint32()), subjects: []string{"db"},
		containers: map[string]string{}, states: map[string]string{}, snapshots: map[string]string{}, contents: map[string]content{},
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { f.sweep(ctx) })
	return f
}

// fill makes a volume, if it is not there, and gives it files with this text in them.
func (f *fixture) fill(name, text string) {
	f.Helper()
	v, err := docker.VolumeCreate(f.Context(), volume.CreateOptions{Name: f.prefix + name})
	assert.NilError(f, err)
	write := func(file string, content []byte) {
		assert.NilError(f, os.MkdirAll(filepath.Dir(filepath.Join(v.Mountpoint, file)), 0o755))
		assert.NilError(f, os.WriteFile(filepath.Join(v.Mountpoint, file), content, 0o640))
	}
	write("file", []byte(text))
	write("only-"+text+"/file", []byte(text))
	write("large", append(bytes.Repeat([]byte("0123456789abcdef"), 80_000), text...))
}

// start runs a container with volumes, which are mounted at their names. It has the engine's network, and no filter of system
// calls: most of the time that a container costs is for those.
func (f *fixture) start(name, script string, volumes ...string) {
	f.Helper()
	f.startOn("host", name, script, volumes...)
}

func (f *fixture) startOn(network container.NetworkMode, name, script string, volumes ...string) {
	f.Helper()
	host := &container.HostConfig{
		NetworkMode: network, SecurityOpt: []string{"seccomp=unconfined"}, RestartPolicy: container.RestartPolicy{Name: f.policy},
	}
	for _, v := range volumes {
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeVolume, Source: f.prefix + v, Target: "/" + v})
	}
	config := &container.Config{Image: "busybox", Cmd: []string{"sh", "-c", script}, StopSignal: "SIGKILL"}
	created, err := docker.ContainerCreate(f.Context(), config, host, nil, nil, f.prefix+name)
	assert.NilError(f, err)
	assert.NilError(f, docker.ContainerStart(f.Context(), created.ID, container.StartOptions{}))
	f.containers[name] = created.ID
}

func (f *fixture) stop(name string) {
	f.Helper()
	assert.NilError(f, docker.ContainerStop(f.Context(), f.containers[name], container.StopOptions{}))
	stays := container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled}}
	_, err := docker.ContainerUpdate(f.Context(), f.containers[name], stays)
	assert.NilError(f, err)
}

// create takes a snapshot without any fault.
func (f *fixture) create(name string) {
	f.Helper()
	id := f.succeed("create", f.prefix+"db", name)
	f.snapshots[name], f.contents[id] = id, f.captured()
}

// content describes what volumes hold, by where they are mounted.
type content map[string]string

// within is the part of it that is mounted in the places of another.
func (c content) within(other content) content {
	part := content{}
	for destination := range other {
		part[destination] = c[destination]
	}
	return part
}

// captured is what the volumes of the container db hold: all that are captured.
func (f *fixture) captured() content {
	f.Helper()
	found, err := docker.ContainerInspect(f.Context(), f.prefix+"db")
	assert.NilError(f, err)
	return f.contentOf(found)
}

// contentOf describes the content of a container's volumes, without what the writer writes all the time.
func (f *fixture) contentOf(c container.InspectResponse) content {
	f.Helper()
	found := content{}
	for _, m := range c.Mounts {
		found[m.Destination] = listTree(f.T, m.Source)
	}
	return found
}

// listTree lists the entries of a folder with their attributes and a hash of their content.
func listTree(t *testing.T, root string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(entry.Name(), writerPrefix) {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		modified := info.ModTime().UTC().Format(time.RFC3339Nano)
		if path == root {
			modified = "" // the writer's files are made in it
		}
		status := info.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&text, "%s %s %d:%d %s", strings.TrimPrefix(path, root), info.Mode(), status.Uid, status.Gid, modified)
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, " %d %x", len(content), sha256.Sum256(content))
		}
		text.WriteByte('\n')
		return nil
	})
	assert.NilError(t, err)
	return text.String()
}

// outcome is how a command ended.
type outcome struct {
	status         int
	stdout, stderr string
}

// isDone tells whether the command says that it has done what it was asked for. With 3 something is missing, which it names.
func (o outcome) isDone() bool { return o.status == 0 || o.status == 3 }

func (o outcome) String() string {
	return fmt.Sprintf("exit status %d\nstdout: %s\nstderr: %s", o.status, o.stdout, o.stderr)
}

// store is the volume with the archives of this cell. No other cell has it.
func (f *fixture) store() string { return f.prefix + "store" }

// storeVariable gives a command that store.
func (f *fixture) storeVariable() string { return "DOCKER_SNAPSHOT_STORE=" + f.store() }

// run runs a command of the plugin, with the engine at that address.
func (f *fixture) run(address string, args ...string) outcome {
	f.Helper()
	f.listing = nil
	ctx, cancel := context.WithTimeout(f.Context(), commandTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, plugin, args...)
	command.Env = append(os.Environ(), "DOCKER_HOST="+address, f.storeVariable(), "DOCKER_SNAPSHOT_AUTO_CLEANUP=false")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if exit, isExit := errors.AsType[*exec.ExitError](err); err != nil && !isExit {
		assert.NilError(f, err)
	} else if ctx.Err() != nil {
		f.Errorf("%s did not end within %s, and was killed: %s", args, commandTimeout, &stderr)
	} else if isExit {
		return outcome{exit.ExitCode(), strings.TrimSpace(stdout.String()), stderr.String()}
	}
	return outcome{0, strings.TrimSpace(stdout.String()), stderr.String()}
}

// slowAfter is how long a command that nothing happens to may take before we look at what it waits for.
const slowAfter = 20 * time.Second

// runPlain runs a command without any fault. It checks that the command does not wait longer than it may; of one that does it shows
// what it asked the engine for, and where its processes waited.
func (f *fixture) runPlain(args ...string) outcome {
	f.Helper()
	p, address := startProxy(f.T, socket, cell{fault: faultNone})
	waits := make(chan string, 1)
	began := time.Now()
	look := time.AfterFunc(slowAfter, func() { waits <- f.waits() })
	o := f.run(address, args...)
	took := time.Since(began)
	look.Stop()
	if took > lockTimeout {
		f.Logf("after %s:\n%s", slowAfter, <-waits)
	}
	assert.Check(f, took <= lockTimeout, "%s took %s: %s\n%s", args, took, o, p.timeline())
	return o
}

// succeed runs a command without any fault, and returns what it prints.
func (f *fixture) succeed(args ...string) string {
	f.Helper()
	o := f.runPlain(args...)
	assert.Equal(f, o.status, 0, "%s: %s", args, o)
	return o.stdout
}

// observeStates records what must be the same afterwards.
func (f *fixture) observeStates() {
	f.Helper()
	for name := range f.containers {
		f.states[name] = f.state(name)
	}
	f.before = f.captured()
}

// state describes the container that bears a name.
func (f *fixture) state(name string) string {
	found, err := docker.ContainerInspect(f.Context(), f.prefix+name)
	if err != nil {
		return err.Error()
	}
	return found.State.Status + " " + found.ID
}

// sweep removes everything of the cell.
func (f *fixture) sweep(ctx context.Context) {
	left := f.leftovers(ctx)
	for _, c := range left.containers {
		_ = docker.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
	}
	for _, i := range left.images {
		_, _ = docker.ImageRemove(ctx, i.ID, image.RemoveOptions{Force: true, PruneChildren: true})
	}
	for _, v := range left.volumes {
		_ = docker.VolumeRemove(ctx, v.Name, true)
	}
}

// writerPrefix begins the names of the files that a writer appends to.
const writerPrefix = "count-"

// countTwice appends a line to one file and then to another, over and over: at any instant the first has as many lines as the
// second, or one more.
const countTwice = "while :; do echo . >>/two/" + writerPrefix + "first; echo . >>/two/" + writerPrefix + "second; usleep 30000; done"

// checkCounts checks that a copy of the writer's files is of one instant.
func (f *fixture) checkCounts(volume string) {
	f.Helper()
	first, err := os.ReadFile(filepath.Join(volume, writerPrefix+"first"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	assert.NilError(f, err)
	second, err := os.ReadFile(filepath.Join(volume, writerPrefix+"second"))
	if ahead := bytes.Count(first, []byte("\n")) - bytes.Count(second, []byte("\n")); ahead != 0 && ahead != 1 {
		f.Errorf("the writer's files are not of one instant: %d bytes and %d (%v)", len(first), len(second), err)
	}
}
