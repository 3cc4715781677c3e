//go:build linux

package worker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
)

// A confined process can do what a worker does, as every test with a worker of its own shows, and no more.
func TestAConfinedProcess(t *testing.T) {
	assert.Equal(t, runProbe(t, "1"), "socket: operation not permitted\nopen by handle: operation not permitted\nmount: operation not permitted\n"+
		"program: operation not permitted\nptrace: operation not permitted\n")
}

// No thread of a worker that waits for a request is in a system call that Go might have to wait for.
func TestAWorkerWaitsInThePoller(t *testing.T) {
	w := newWorld(t)
	worker, connection := startConfined(t, w.options(Options{}))
	w.client(connection, worker.Wait)
	want := strconv.Itoa(unix.SYS_EPOLL_PWAIT)
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		calls := systemCalls(t, worker.Process.Pid)
		if slices.Contains(calls, want) {
			return
		}
		assert.Assert(t, time.Now().Before(deadline), "the threads are in the system calls %v", calls)
	}
}

// systemCalls are the numbers of those that the threads of a process are in.
func systemCalls(t *testing.T, pid int) (numbers []string) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	assert.NilError(t, err)
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) { // it has ended
			continue
		}
		assert.NilError(t, err)
		number, _, _ := strings.Cut(string(content), " ")
		numbers = append(numbers, number)
	}
	return numbers
}

// probeVariable has the test's program confine itself, and say what it is refused. Its value is the folder for [probeNarrow].
const probeVariable = "DOCKER_SNAPSHOT_TEST_PROBE"

// runProbe runs [probe] in a process of its own, and returns what it prints.
func runProbe(t *testing.T, value string) string {
	t.Helper()
	program, err := os.Executable()
	assert.NilError(t, err)
	command := exec.Command(program)
	command.Env = append(os.Environ(), probeVariable+"="+value)
	out, err := command.CombinedOutput()
	assert.NilError(t, err, "%s", out)
	return string(out)
}

// tell prints what came of a try, by the error's number alone.
func tell(what string, err error) {
	if number, ok := errors.AsType[unix.Errno](err); ok {
		err = number
	}
	_, _ = fmt.Fprintf(os.Stdout, "%s: %v\n", what, err)
}

func probe() error {
	if err := confine(); err != nil {
		return err
	}
	if dir := os.Getenv(probeVariable); filepath.IsAbs(dir) {
		return probeNarrow(dir)
	}
	_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	tell("socket", err)
	_, err = unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(1, []byte("handle")), unix.O_RDONLY)
	tell("open by handle", err)
	tell("mount", unix.Mount("", "/", "", unix.MS_REMOUNT, ""))
	tell("program", unix.Exec("/bin/true", []string{"true"}, nil))
	tell("ptrace", unix.PtraceAttach(os.Getppid()))
	return nil
}

func probeNarrow(dir string) error {
	if err := narrow(Options{StoreRoot: filepath.Join(dir, "store"), MountRoot: filepath.Join(dir, "mnt")}); err != nil {
		return err
	}
	at := func(path string) string { return filepath.Join(dir, path) }
	pack, head, file := at("store/snapshots/pack"), at("store/tmp/head"), at("mnt/0/file")
	write := func(path string, flags int) error {
		f, err := os.OpenFile(path, flags, 0o600)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	tell("read a pack", write(pack, os.O_RDONLY))
	tell("write a pack", write(pack, os.O_WRONLY))
	tell("truncate a pack", os.Truncate(pack, 0))
	tell("remove a pack", os.Remove(pack))
	tell("make a pack", write(pack+"2", os.O_CREATE|os.O_WRONLY))
	tell("link a pack", os.Link(pack, pack+"2"))
	tell("write elsewhere", write(at("elsewhere"), os.O_WRONLY))
	tell("make a head", write(head, os.O_CREATE|os.O_WRONLY))
	tell("move a head", os.Rename(head, at("store/volumes/head")))
	tell("make a snapshot of a head", os.Rename(at("store/volumes/head"), pack+"2"))
	tell("make a file", write(file, os.O_CREATE|os.O_WRONLY))
	tell("move a file", os.Rename(file, at("mnt/0/folder/file")))
	tell("link a file", os.Link(at("mnt/0/folder/file"), file))
	tell("make a pipe", unix.Mkfifo(at("mnt/0/pipe"), 0o600))
	return nil
}

// Each call has a number on both architectures that releases have a worker for.
func TestEveryCallOfAWorkerExists(t *testing.T) {
	assert.Assert(t, len(allowed()) > 0)
	for _, machine := range []*arch.Info{arch.X86_64, arch.AARCH64} {
		for _, name := range allowed() {
			if name == ofThisArchitecture[0] {
				continue // checked where it is built
			}
			_, known := machine.SyscallNames[name]
			assert.Assert(t, known, "%s has no %s", machine.Name, name)
		}
	}
}
