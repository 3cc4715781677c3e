//go:build linux

// Command endurance takes many snapshots of one container in a row, and then captures and restores it again and again. It
// measures each step, and fails if a late one costs more than an early one.
//
//	endurance CREATES ROUNDS          on the engine of DOCKER_HOST, with the docker of PATH, as root
//
// Ctrl-C ends it after the current step, and compares what there is.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "endurance:", err)
		os.Exit(1)
	}
}

// The container, with a volume of so many files of so many bytes, of which each step changes a few.
const (
	subject  = "long"
	files    = 200
	fileSize = 10_000
	changed  = 3
	looks    = 50 // at the memory of workers and at the engine, in all steps: looking costs
)

func run(args []string) error {
	if len(args) != 2 { //nolint:mnd // see the usage above
		return errors.New("usage: endurance CREATES ROUNDS")
	}
	creates, err := strconv.Atoi(args[0])
	rounds, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	e := newEngine(interrupted)
	if _, err := e.docker("run", "--detach", "--name", subject, "--network", "none", "--volume", subject+":/data", "busybox", "sleep", "1000000"); err != nil {
		return err
	}
	volume, err := e.docker("volume", "inspect", "--format", "{{.Mountpoint}}", subject)
	if err != nil {
		return err
	}
	t := tree{root: volume}
	for n := range files {
		if err := t.write(n, 0); err != nil {
			return err
		}
	}
	if err := e.repeat("create", creates, func(n int) error {
		if err := t.change(n); err != nil {
			return err
		}
		_, err := e.timed("snapshot", "create", "--quiet", subject)
		return err
	}); err != nil {
		return err
	}
	if err := e.repeat("create and restore in place", rounds, func(n int) error { return round(e, t, creates+n) }); err != nil {
		return err
	}
	return e.check()
}

// round captures the container, changes its volume and its root filesystem, and restores it.
func round(e *engine, t tree, n int) error {
	if err := t.change(n); err != nil {
		return err
	}
	name := fmt.Sprintf("round-%d", n)
	if _, err := e.timed("snapshot", "create", "--quiet", subject, name); err != nil {
		return err
	}
	want, err := t.read()
	if err != nil {
		return err
	}
	if err := t.change(n + 1); err != nil {
		return err
	}
	pid, err := e.docker("inspect", "--format", "{{.State.Pid}}", subject)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join("/proc", pid, "root/file"), []byte(name), 0o600); err != nil {
		return err
	}
	if _, err := e.timed("snapshot", "restore", "--replace", "--force", "--quiet", "--settle", "0s", "--timeout", "0", subject+":"+name); err != nil {
		return err
	}
	found, err := t.read()
	if err == nil && found != want {
		err = fmt.Errorf("round %d: the volume is not what it was", n)
	}
	return err
}

// tree is the content of the volume.
type tree struct{ root string }

func (t tree) path(n int) string { return filepath.Join(t.root, fmt.Sprintf("file-%d", n%files)) }

func (t tree) write(n, version int) error {
	line := fmt.Sprintf("file %d, version %d\n", n%files, version)
	return os.WriteFile(t.path(n), []byte(strings.Repeat(line, fileSize/len(line))), 0o600)
}

// change writes a few files anew, the same ones for the same step.
func (t tree) change(step int) error {
	for n := range changed {
		if err := t.write(step*changed+n, step+1); err != nil {
			return err
		}
	}
	return nil
}

func (t tree) read() (string, error) {
	var all strings.Builder
	for n := range files {
		content, err := os.ReadFile(t.path(n))
		if err != nil {
			return "", err
		}
		all.Write(content)
	}
	return all.String(), nil
}

// repeat runs a step so many times, measures each, and compares the first tenth with the last.
func (e *engine) repeat(what string, times int, step func(n int) error) error {
	if times == 0 {
		return nil
	}
	var all []sample
	began, every := time.Now(), max(times/looks, 1)
	for n := range times {
		if e.interrupted.Err() != nil {
			break
		}
		e.current = sample{}
		peak := func() float64 { return 0 }
		if n%every == 0 {
			peak = e.watchWorkers()
		}
		before := e.storeBytes()
		err := step(n)
		e.current.set(workerMemory, peak())
		if err != nil {
			return fmt.Errorf("%s, step %d: %w", what, n+1, err)
		}
		if before > 0 { // there was a store
			e.current.set(storeGrowth, e.storeBytes()-before)
		}
		if n%every == 0 {
			if err := e.look(); err != nil {
				return err
			}
		}
		all = append(all, e.current)
		if (n+1)%100 == 0 {
			fmt.Fprintf(os.Stderr, "%s: %d of %d, %s\n", what, n+1, times, time.Since(began).Round(time.Second))
		}
	}
	return compare(what, all)
}
