//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdEngine starts another engine, with the busybox images, and ends it with the script.
func cmdEngine(ts *testscript.TestScript, neg bool, args []string) {
	dir := ""
	if len(args) > 2 && args[0] == "-dir" {
		dir, args = ts.MkAbs(args[1]), args[2:]
	}
	usage(ts, !neg && len(args) >= 2, "engine [-dir FOLDER] debian|moby NAME [FLAG…]")
	if dir == "" {
		var err error
		dir, err = os.MkdirTemp("", "e2e-")
		ts.Check(err)
		ts.Check(os.Remove(dir)) // it must not be there yet
	}
	start := exec.Command("./engine.sh", append([]string{"start", args[0], "--dir", dir, "--"}, args[2:]...)...)
	start.Stderr = ts.Stderr()
	host, err := start.Output()
	ts.Check(err)
	ts.Defer(func() {
		if out, err := exec.Command("./engine.sh", "stop", "--dir", dir).CombinedOutput(); err != nil {
			ts.Logf("stop the engine: %v: %s", err, out)
		}
	})
	ts.Setenv(args[1], strings.TrimSpace(string(host)))
	images := exec.Command("./image.sh", "busybox")
	images.Env = append(os.Environ(), "DOCKER_HOST="+ts.Getenv(args[1]))
	images.Stderr = ts.Stderr()
	ts.Check(images.Run())
}

// cmdCompose adds docker compose to the script's docker.
func cmdCompose(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 0, "compose")
	ts.Check(installCompose(ts.Getenv("DOCKER_CONFIG")))
}

// installCompose adds docker compose to the docker of a configuration.
func installCompose(config string) error {
	folder, err := exec.Command("./engine.sh", "build", "compose").Output()
	if err != nil {
		return fmt.Errorf("build Compose: %w: %s", err, stderrOf(err))
	}
	const plugin = "docker-compose"
	return os.Symlink(filepath.Join(strings.TrimSpace(string(folder)), plugin), filepath.Join(config, "cli-plugins", plugin))
}
