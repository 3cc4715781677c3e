//go:build e2e

package faults

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/client"
)

var options struct {
	cells  int
	ends   int
	seed   uint64
	all    bool
	cell   string
	within time.Duration // 0: no limit
}

// What all cells share.
var (
	plugin string         // the program
	docker *client.Client // leads to the engine, past every proxy
	socket string         // the engine's
)

func TestMain(m *testing.M) {
	flag.IntVar(&options.cells, "cells", 150, "how many cells to run")
	flag.IntVar(&options.ends, "ends", 4, "how many more cells to run that end the engine")
	flag.Uint64Var(&options.seed, "seed", rand.Uint64N(1_000_000), "chooses the cells")
	flag.BoolVar(&options.all, "all", false, "run every cell")
	flag.StringVar(&options.cell, "cell", "", "run only SCENARIO/FAULT/REQUEST; each may be a pattern")
	flag.DurationVar(&options.within, "within", 0, "begin no cell after so long")
	flag.Parse()
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func run(m *testing.M) (status int, err error) {
	address := os.Getenv("DOCKER_HOST")
	var isSocket bool
	if socket, isSocket = strings.CutPrefix(address, "unix://"); !isSocket {
		return 1, errors.New("DOCKER_HOST names no engine on this machine: start one with e2e/engine.sh")
	}
	if docker, err = client.NewClientWithOpts(client.WithHost(address), client.WithAPIVersionNegotiation()); err != nil {
		return 1, err
	}
	defer docker.Close()
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	plugin = filepath.Join(dir, "docker-snapshot")
	for _, args := range [][]string{ // as install.sh does it: with the workers inside
		{"../../install.sh", "--workers"},
		{"go", "build", "-trimpath", "-tags", "workers", "-ldflags", "-s -w", "-o", plugin, "../.."},
	} {
		build := exec.Command(args[0], args[1:]...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("build the plugin: %w\n%s", err, out)
		}
	}
	if err := os.Setenv("DOCKER_CONFIG", dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
