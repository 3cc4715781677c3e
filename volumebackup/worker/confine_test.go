//go:build linux

package worker

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
)

// A confined process can do what a worker does, as every test with a worker of its own shows, and no more.
func TestAConfinedProcess(t *testing.T) {
	program, err := os.Executable()
	assert.NilError(t, err)
	command := exec.Command(program)
	command.Env = append(os.Environ(), probeVariable+"=1")
	out, err := command.CombinedOutput()
	assert.NilError(t, err, "%s", out)
	assert.Equal(t, string(out), "socket: operation not permitted\nopen by handle: operation not permitted\nmount: operation not permitted\n"+
		"program: operation not permitted\nptrace: operation not permitted\n")
}

// probeVariable has the test's program confine itself, and say what it is refused.
const probeVariable = "DOCKER_SNAPSHOT_TEST_PROBE"

func probe() error {
	if err := confine(); err != nil {
		return err
	}
	tell := func(what string, err error) { _, _ = fmt.Fprintf(os.Stdout, "%s: %v\n", what, err) }
	_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	tell("socket", err)
	_, err = unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(1, []byte("handle")), unix.O_RDONLY)
	tell("open by handle", err)
	tell("mount", unix.Mount("", "/", "", unix.MS_REMOUNT, ""))
	tell("program", unix.Exec("/bin/true", []string{"true"}, nil))
	tell("ptrace", unix.PtraceAttach(os.Getppid()))
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
