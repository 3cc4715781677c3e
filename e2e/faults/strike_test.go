//go:build e2e

package faults

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"gotest.tools/v3/assert"
)

// fault is what goes wrong at a request.
type fault string

const (
	faultNone fault = "none"

	// These happen to the request itself.
	faultDrop      fault = "drop"      // the connection breaks before it reaches the engine
	faultLose      fault = "lose"      // the engine does what it is asked for; its answer is lost
	faultDelay     fault = "delay"     // it arrives late
	faultFail      fault = "fail"      // the engine is not asked; the answer is status 500
	faultHang      fault = "hang"      // no answer comes until the client gives up; in the end the connection breaks
	faultPartition fault = "partition" // all connections break, and new ones are refused for a while

	// These happen to processes when the request comes, which then goes on to the engine.
	faultKill       fault = "kill"        // SIGKILL for the client
	faultTerm       fault = "term"        // SIGTERM for the client
	faultInterrupt  fault = "interrupt"   // SIGINT for the client
	faultKillBoth   fault = "kill-both"   // SIGKILL for the client and its guard
	faultKillWorker fault = "kill-worker" // SIGKILL for the workers of that moment

	// These end the engine when the request comes. It is started again at once.
	faultCrash   fault = "crash"   // SIGKILL
	faultRestart fault = "restart" // SIGTERM
)

var (
	requestFaults = []fault{faultDrop, faultLose, faultDelay, faultFail, faultHang, faultPartition}
	processFaults = []fault{faultKill, faultTerm, faultInterrupt, faultKillBoth, faultKillWorker}
	allFaults     = slices.Concat(requestFaults, processFaults)
	engineFaults  = []fault{faultCrash, faultRestart} // each needs the engine for itself
)

func (f fault) endsEngine() bool { return slices.Contains(engineFaults, f) }

// kind says what a fault happens to.
func (f fault) kind() string {
	switch {
	case f.endsEngine():
		return "engine"
	case slices.Contains(processFaults, f):
		return "process"
	}
	return "request"
}

// isSudden tells whether the client may be unable to say how its operation ends: it is dead, or who would have to carry on is.
func (f fault) isSudden() bool { return f == faultKill || f == faultKillBoth || f.endsEngine() }

// strike does what a fault does to processes. It returns false if there are none of that kind at the moment.
func (f *fixture) strike(kind fault, p *proxy) bool {
	switch kind {
	case faultKill:
		return signal(syscall.SIGKILL, f.clients(false))
	case faultTerm:
		return signal(syscall.SIGTERM, f.clients(false))
	case faultInterrupt:
		return signal(syscall.SIGINT, f.clients(false))
	case faultKillBoth:
		return signal(syscall.SIGKILL, f.clients(true))
	case faultKillWorker:
		return signal(syscall.SIGKILL, f.workers())
	case faultCrash:
		p.isolate()
		f.engine("kill")
	case faultRestart:
	default:
		f.Errorf("there is no fault %s", kind)
		return false
	}
	p.pending.Go(func() {
		f.engine("restart")
		p.join()
	})
	return true
}

// signal sends a signal to processes, and returns false if there are none.
func signal(number syscall.Signal, processes []int) bool {
	for _, pid := range processes {
		_ = syscall.Kill(pid, number) // it may have ended this moment
	}
	return len(processes) > 0
}

// clients are the processes of the plugin that work on this cell: the command itself and, if that is asked for, its guard.
func (f *fixture) clients(guards bool) (found []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if program, err := os.Readlink(link); err != nil || program != plugin {
			continue
		}
		words, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		variables, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "environ"))
		isGuard := slices.Contains(strings.Split(string(words), "\x00"), "guard")
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err == nil && bytes.Contains(variables, []byte(f.storeVariable())) && (guards || !isGuard) {
			found = append(found, pid)
		}
	}
	return found
}

// workers are the processes of the workers that work on this cell.
func (f *fixture) workers() (found []int) {
	running, err := docker.ContainerList(f.Context(), container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "cua.snapshot.worker.purpose"))})
	if err != nil {
		return nil
	}
	for _, c := range running {
		if !f.mounts(c) {
			continue
		}
		if seen, err := docker.ContainerInspect(f.Context(), c.ID); err == nil && seen.State.Pid != 0 {
			found = append(found, seen.State.Pid)
		}
	}
	return found
}

// engine calls e2e/engine.sh for the engine of DOCKER_HOST. Its output goes to a file: the engine would hold a pipe open.
func (f *fixture) engine(verb string) {
	f.Helper()
	log, err := os.Create(filepath.Join(f.TempDir(), verb))
	assert.Check(f, err)
	defer log.Close()
	command := exec.Command("../engine.sh", verb) // whatever happens to the test
	command.Env = append(os.Environ(), fmt.Sprintf("DOCKER_HOST=unix://%s", socket))
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		f.Errorf("engine.sh %s: %v: %s", verb, err, said)
	}
}
