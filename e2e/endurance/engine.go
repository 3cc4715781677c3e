//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// engine is the engine under test, and what the current step has cost so far.
type engine struct {
	dir         string // everything of it is in there
	store       string // the store's directory, once there is one
	current     sample
	interrupted context.Context //nolint:containedctx // it says whether to go on with the next step
	taken       int             // snapshots, by hand
}

func newEngine(interrupted context.Context) *engine {
	return &engine{dir: filepath.Dir(strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")), interrupted: interrupted}
}

// docker runs a command and returns what it prints.
func (e *engine) docker(args ...string) (string, error) {
	out, _, err := e.run(args)
	return out, err
}

// timed does the same, and adds what it took to the current step.
func (e *engine) timed(args ...string) (string, error) {
	began := time.Now()
	out, usage, err := e.run(args)
	if args[1] == "create" && err == nil {
		e.taken++
	}
	e.current.add(duration, float64(time.Since(began).Milliseconds()))
	if usage != nil { // of the command and of the plugin that it waited for
		e.current.set(clientMemory, max(e.current.of(clientMemory), float64(usage.Maxrss)))
	}
	return out, err
}

func (e *engine) run(args []string) (string, *syscall.Rusage, error) {
	command := exec.CommandContext(context.WithoutCancel(e.interrupted), "docker", args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of reach of Ctrl-C
	var out, failure bytes.Buffer
	command.Stdout, command.Stderr = &out, &failure
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, failure.String())
	}
	var usage *syscall.Rusage
	if command.ProcessState != nil {
		usage, _ = command.ProcessState.SysUsage().(*syscall.Rusage)
	}
	return strings.TrimSpace(out.String()), usage, err
}

// look asks what the engine itself holds, and counts the processes of ours that are left.
func (e *engine) look() error {
	held, err := e.docker("info", "--format", "{{.NFd}} {{.NGoroutines}}")
	if err != nil {
		return err
	}
	var descriptors, goroutines float64
	if _, err := fmt.Sscan(held, &descriptors, &goroutines); err != nil {
		return fmt.Errorf("read %q: %w", held, err)
	}
	e.current.set(engineDescriptors, descriptors)
	e.current.set(engineGoroutines, goroutines)
	if pid, err := os.ReadFile(filepath.Join(e.dir, "dockerd.pid")); err == nil {
		e.current.set(engineMemory, status(strings.TrimSpace(string(pid)), "VmRSS"))
	}
	guards := 0
	plugin := os.Getenv("DOCKER_CONFIG") + "/cli-plugins/docker-snapshot"
	forProcesses(func(_, line string) {
		if strings.HasPrefix(line, plugin) && !strings.Contains(line, " tidy") { // one of those may be at work
			guards++
		}
	})
	e.current.set(processes, float64(1+guards)) // so that none is a number to compare with
	return nil
}

// watchWorkers looks at this engine's workers until peak is called, which returns the most memory that one had, in KiB.
func (e *engine) watchWorkers() (peak func() float64) {
	stop, done := make(chan struct{}), make(chan float64)
	go func() {
		var most float64
		for {
			forProcesses(func(pid, line string) {
				if !strings.HasPrefix(line, "/docker-snapshot worker") {
					return
				}
				mounts, _ := os.ReadFile(filepath.Join("/proc", pid, "mountinfo"))
				if bytes.Contains(mounts, []byte(e.dir+"/")) {
					most = max(most, status(pid, "VmHWM"))
				}
			})
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(20 * time.Millisecond): //nolint:mnd // often enough for a worker that lives for a tenth of a second
			}
		}
	}()
	return func() float64 {
		close(stop)
		return <-done
	}
}

// forProcesses calls f with the ID and the command line of each process.
func forProcesses(f func(pid, line string)) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if line, err := os.ReadFile(path); err == nil {
			f(filepath.Base(filepath.Dir(path)), string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
}

// status returns a number of /proc/PID/status; 0: the process is gone.
func status(pid, key string) float64 {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			number, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return number
		}
	}
	return 0
}

// storeBytes returns what the store occupies; 0: there is none.
func (e *engine) storeBytes() float64 {
	if e.store == "" {
		e.store, _ = e.docker("volume", "inspect", "--format", "{{.Mountpoint}}", "cua-snapshots")
	}
	if e.store == "" {
		return 0
	}
	var total int64
	_ = filepath.WalkDir(e.store, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what is removed meanwhile does not count
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				total += stat.Blocks * 512 //nolint:mnd // the unit of st_blocks
			}
		}
		return nil
	})
	return float64(total)
}

// check looks for what must not be: a snapshot that is lost or damaged, and a worker that is left.
func (e *engine) check() error {
	list, err := e.docker("snapshot", "ls", "--quiet", "--filter", "trigger=manual", subject)
	if err != nil {
		return err
	}
	if found := len(strings.Fields(list)); found != e.taken {
		return fmt.Errorf("%d snapshots are listed, and %d were taken", found, e.taken)
	}
	began := time.Now()
	if _, err := e.docker("snapshot", "verify", "--all", "--quiet"); err != nil {
		return err
	}
	fmt.Printf("all verified in %s\n", time.Since(began).Round(time.Second))
	left, err := e.docker("ps", "--all", "--quiet", "--filter", "name=cua-snapshot-")
	if err == nil && left != "" {
		err = fmt.Errorf("containers are left: %s", left)
	}
	return err
}
