//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// configDir is a DOCKER_CONFIG with the plugin in it; each script gets a copy.
var configDir string

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"tty":       program(runTTY),
		"interrupt": program(runInterrupt),
		"when":      program(runWhen),
	})
}

// suite runs the tests. Otherwise this binary is one of the programs that scripts use.
type suite struct{ m *testing.M }

// Run makes what all scripts share, runs them, and returns the exit status.
func (s suite) Run() int {
	defer func() { os.RemoveAll(configDir) }()
	if err := s.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return s.m.Run()
}

func (suite) prepare() (err error) {
	if os.Getenv("DOCKER_HOST") == "" {
		return errors.New("DOCKER_HOST names no engine: start one with e2e/engine.sh")
	}
	if err := theEngine.observe(); err != nil {
		return err
	}
	configDir, err = os.MkdirTemp("", "e2e-")
	if err != nil {
		return err
	}
	if err := os.Chmod(configDir, 0o755); err != nil { // scripts may run it as somebody else
		return err
	}
	if err := os.Setenv("DOCKER_CONFIG", configDir); err != nil {
		return err
	}
	plugins := filepath.Join(configDir, "cli-plugins")
	if err := os.Mkdir(plugins, 0o755); err != nil {
		return err
	}
	for _, program := range []string{"mapwriter", "directwriter"} {
		if err := build(filepath.Join(configDir, program), "./"+program); err != nil {
			return err
		}
	}
	return buildPlugin(filepath.Join(plugins, "docker-snapshot"))
}

// buildPlugin builds the plugin as install.sh does, with the workers inside. One that is its own worker reads and hashes itself
// whenever it needs one, and its container takes longer to start.
func buildPlugin(file string) error {
	if out, err := exec.Command("../install.sh", "--workers").CombinedOutput(); err != nil {
		return fmt.Errorf("build the workers: %w\n%s", err, out)
	}
	return build(file, "..", "-tags", "workers", "-ldflags", "-s -w -X github.com/cua-snapshot/docker-snapshot/plugin/metadata.version=e2e")
}

// build builds a program without libraries: it only needs the kernel.
func build(file, folder string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-o", file}, flags...)
	command := exec.Command("go", append(args, folder)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return nil
}

// theEngine is the engine that everything runs on.
var theEngine engine

type engine struct {
	name       string // as engine.sh calls it
	userns     bool
	privileged bool // can start privileged containers
}

// olderMajor matches the version of an engine before 29, which does not use the containerd image store by default.
var olderMajor = regexp.MustCompile(`^2[0-8]\.`)

// observe asks the engine who it is, and fails without one.
func (e *engine) observe() error {
	out, err := exec.Command("docker", "info", "--format", "{{.ServerVersion}}\n{{.SecurityOptions}}").Output()
	if err != nil {
		return fmt.Errorf("reach the engine of DOCKER_HOST: %w: %s", err, stderrOf(err))
	}
	version, security, _ := strings.Cut(string(out), "\n")
	e.name = "moby"
	if olderMajor.MatchString(version) {
		e.name = "debian"
	}
	e.userns = strings.Contains(security, "name=userns")
	e.privileged, err = canGivePrivileges(e.name)
	return err
}

// canGivePrivileges tells whether privileged containers start. Debian's runc fails unless it can give them every
// capability that the kernel knows; a newer one gives them those that it has.
func canGivePrivileges(engine string) (bool, error) {
	if engine != "debian" {
		return true, nil
	}
	last, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return false, err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false, err
	}
	var count int
	var held uint64
	if _, err := fmt.Sscan(string(last), &count); err != nil {
		return false, err
	}
	_, after, _ := bytes.Cut(status, []byte("CapBnd:"))
	if _, err := fmt.Sscanf(string(after), "%x", &held); err != nil {
		return false, err
	}
	return held == 1<<(count+1)-1, nil
}

func stderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}
