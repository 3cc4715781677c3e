//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// ServeConfined is [Serve] in a process that has nothing else to do. First it takes from the process every system call that a worker
// has no use for, and before it restores anything, the right to change the rest of the store. Neither can be undone.
func ServeConfined(ctx context.Context, in *os.File, out io.Writer, o Options) error {
	polled, err := pollable(in)
	if err != nil {
		return err
	}
	if err := confine(); err != nil {
		return err
	}
	return serve(ctx, polled, out, o, narrow)
}

// pollable returns a file, such as a pipe, that is read without a thread that waits in the kernel for its bytes.
//
// Go 1.26 stops all threads for [narrow], and in each collection of garbage, too. It misses one that begins a system call at that very
// moment, and looks again when a minute is over. A read of the next request may begin then, and not end before.
func pollable(f *os.File) (*os.File, error) {
	fd := f.Fd()
	if err := unix.SetNonblock(int(fd), true); err != nil {
		return nil, fmt.Errorf("prepare to read %s: %w", f.Name(), err)
	}
	return os.NewFile(fd, f.Name()), nil
}

// confine takes the system calls away. An engine that does not let the worker do that has a filter of its own, which has
// to be enough.
func confine() error {
	policy := seccomp.Policy{
		DefaultAction: seccomp.ActionErrno, // EPERM
		Syscalls: []seccomp.SyscallGroup{
			{Names: allowed(), Action: seccomp.ActionAllow},
			// The C library, which a plugin built with cgo makes threads with, goes on with clone if there is no clone3.
			{Names: []string{"clone3"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
		},
	}
	err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: policy})
	for _, unsupported := range []error{unix.ENOSYS, unix.EINVAL, unix.EPERM, unix.EACCES} {
		if errors.Is(err, unsupported) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("confine the worker: %w", err)
	}
	return nil
}

func allowed() []string {
	return slices.Concat(ofFiles, ofAttributes, ofNarrowing, ofTheRuntime, ofThisArchitecture)
}

// The system calls of a worker, by what they are for.
var (
	// ofFiles read, write, make and remove what is in volumes and in the store.
	ofFiles = []string{
		"close", "dup", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fcntl", "fdatasync", "flock", "fstat", "fstatfs",
		"fsync", "ftruncate", "getdents64", "ioctl", "linkat", "lseek", "mkdirat", "mknodat", "openat", "openat2", "pipe2", "pread64",
		"preadv", "pwrite64", "pwritev", "read", "readlinkat", "readv", "renameat", "renameat2", "statfs", "statx", "symlinkat",
		"sync_file_range", "syncfs", "truncate", "umask", "unlinkat", "write", "writev",
	}
	// ofAttributes read and set what files have besides their content.
	ofAttributes = []string{
		"fchmod", "fchmodat", "fchown", "fchownat", "fgetxattr", "flistxattr", "fremovexattr", "fsetxattr", "getxattr", "lgetxattr",
		"listxattr", "llistxattr", "lremovexattr", "lsetxattr", "removexattr", "setxattr", "utimensat",
	}
	// ofNarrowing only ever take rights away.
	ofNarrowing = []string{"landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self"}
	// ofTheRuntime are those of Go, and of a C library: memory, threads, signals, time, waiting.
	ofTheRuntime = []string{
		"brk", "clock_gettime", "clock_nanosleep", "clone", "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "exit", "exit_group", "futex",
		"getegid", "geteuid", "getgid", "getpid", "getrandom", "gettid", "getuid", "kill", "madvise", "mmap", "mprotect", "munmap", "nanosleep",
		"prctl", "prlimit64", "restart_syscall", "rseq", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_getaffinity", "sched_yield", "set_robust_list",
		"sigaltstack", "tgkill", "uname",
	}
)
