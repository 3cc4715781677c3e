//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	assert.NilError(t, err)
	if os.Getenv(levelVariable) == quickLevel {
		files, err = quickScripts(files, theEngine.name)
		assert.NilError(t, err)
	}
	assert.Assert(t, len(files) > 0, "there are no scripts in testdata")
	testscript.Run(t, testscript.Params{
		Files:               files,
		Setup:               func(env *testscript.Env) error { return setup(t.Context(), env) },
		Condition:           condition,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("E2E_UPDATE") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"state":      cmdState,
			"labels":     cmdLabels,
			"eventually": cmdEventually,
			"status":     cmdStatus,
			"same":       cmdSame,
			"json":       cmdJSON,
			"stdout2env": cmdStdout2env,
			"sshd":       cmdSSHD,
			"engine":     cmdEngine,
			"compose":    cmdCompose,
			"picture":    cmdPicture,
			"disk":       cmdDisk,

			"certificates": cmdCertificates,
			"clock":        cmdClock,
		},
	})
}

// setup gives a script its own configuration and its own prefix, and removes what the script made.
func setup(ctx context.Context, env *testscript.Env) error {
	// Who has no rights gets as far as the engine, and is refused there.
	for _, dir := range []string{filepath.Dir(env.WorkDir), env.WorkDir} {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	config := filepath.Join(env.WorkDir, ".docker")
	if err := os.MkdirAll(filepath.Join(config, "cli-plugins"), 0o755); err != nil {
		return err
	}
	const plugin = "cli-plugins/docker-snapshot"
	if err := os.Symlink(filepath.Join(configDir, plugin), filepath.Join(config, plugin)); err != nil {
		return err
	}
	script := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	prefix := fmt.Sprintf("%s-%06x", strings.ToLower(script), rand.IntN(1<<24))
	env.Setenv("P", prefix)
	env.Setenv("ENGINE", theEngine.name)
	env.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
	env.Setenv("SOCKET", strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://"))
	env.Setenv("DOCKER_CONFIG", config)
	env.Setenv(storeVariable, prefix+"-store")
	// What a script's create has removed afterwards must not depend on what other scripts make.
	env.Setenv("DOCKER_SNAPSHOT_MAX_TOTAL", "0")
	env.Setenv("DOCKER_SNAPSHOT_MAX_SIZE", "0")
	repository, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	env.Setenv("REPOSITORY", repository)
	env.Setenv("USER_HOME", os.Getenv("HOME"))
	env.Setenv("GOARCH", runtime.GOARCH)
	env.Setenv("MAPWRITER", filepath.Join(configDir, "mapwriter"))
	env.Setenv("ROUNDS", strconv.Itoa(rounds()))

	ctx = context.WithoutCancel(ctx)
	start := now()
	stop := limit(scriptLimit, prefix, env.T())
	env.Defer(func() {
		stop()
		t, ok := env.T().(interface{ Failed() bool })
		if ok && t.Failed() {
			env.T().Log(evidence(ctx, prefix, start))
		}
		if os.Getenv("E2E_KEEP") == "" {
			sweep(ctx, prefix, env.T())
		}
	})
	return nil
}

// rounds is how often a test repeats what may go wrong at one moment and not at another.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("E2E_ROUNDS")); err == nil {
		return n
	}
	if os.Getenv(levelVariable) == quickLevel {
		return 2
	}
	return 6
}

func condition(name string) (bool, error) {
	switch name {
	case "debian", "moby":
		return theEngine.name == name, nil
	case "userns":
		return theEngine.userns, nil
	case "privileged":
		return theEngine.privileged, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// now is the time in the form that docker events takes. The engine has the same clock.
func now() string { return time.Now().Format(time.RFC3339Nano) }

// evidence prints what helps to understand why a script failed.
func evidence(ctx context.Context, prefix, start string) string {
	var b strings.Builder
	show := func(args ...string) {
		ctx, cancel := context.WithTimeout(ctx, answerPatience)
		defer cancel()
		out, _ := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
		fmt.Fprintf(&b, "$ docker %s\n%s", strings.Join(args, " "), out)
	}
	show("ps", "--all", "--no-trunc")
	show("events", "--since", start, "--until", now(), "--format", "{{.Time}} {{.Type}} {{.Action}} {{.Actor.Attributes.name}}")
	for _, container := range named(ctx, prefix, "ps", "--all", "--format", "{{.Names}}") {
		show("inspect", container)
		show("logs", "--tail", "50", container)
	}
	return b.String()
}

// sweep removes everything that bears the prefix. The script fails for what it cannot remove.
func sweep(ctx context.Context, prefix string, t interface{ Log(args ...any) }) {
	remove := func(names []string, command ...string) {
		if len(names) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, answerPatience)
		defer cancel()
		if out, err := exec.CommandContext(ctx, "docker", append(command, names...)...).CombinedOutput(); err != nil {
			t.Log(fmt.Sprintf("sweep: %v: %s", err, out))
		}
	}
	containers := named(ctx, prefix, "ps", "--all", "--format", "{{.Names}}")
	volumes := mounted(ctx, containers) // some have no name but the engine's
	remove(containers, "rm", "--force", "--volumes")
	remove(workersLeft(ctx, prefix+"-store"), "rm", "--force", "--volumes")
	remove(images(ctx, prefix), "rmi", "--force")
	volumes = append(volumes, named(ctx, prefix, "volume", "ls", "--format", "{{.Name}}")...)
	remove(volumes, "volume", "rm", "--force")
	remove(named(ctx, prefix, "network", "ls", "--format", "{{.Name}}"), "network", "rm")
}

// workersLeft returns the workers of a store that do not end by themselves: others that look into all stores, for lost snapshots for
// one, may have a worker in this one, and would fail without it.
func workersLeft(ctx context.Context, store string) []string {
	var workers []string
	for range 10 {
		if workers = named(ctx, "", "ps", "--all", "--quiet", "--filter", "volume="+store); len(workers) == 0 {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	return workers
}

// images returns those that the script has made: what it leaves makes every list of images slower, for all scripts that follow.
// Some have lost their name, and only the store that they speak of tells whose they are.
func images(ctx context.Context, prefix string) []string {
	all := named(ctx, "", "images", "--format", "{{.Repository}}:{{.Tag}}")
	tagged := slices.DeleteFunc(all, func(image string) bool {
		name := strings.TrimPrefix(strings.TrimPrefix(image, "cua-snapshot-run/"), "cua-snapshot/")
		return !strings.HasPrefix(name, prefix)
	})
	ofStore := "label=" + labels.KeyStore + "=" + prefix + "-store"
	for _, which := range []string{"dangling=true", "reference=cua-snapshot-removed"} {
		tagged = append(tagged, named(ctx, "", "images", "--quiet", "--filter", which, "--filter", ofStore)...)
	}
	return tagged
}

// mounted returns the volumes that containers mount.
func mounted(ctx context.Context, containers []string) []string {
	if len(containers) == 0 {
		return nil
	}
	const format = `{{range .Mounts}}{{if eq .Type "volume"}}{{println .Name}}{{end}}{{end}}`
	return named(ctx, "", append([]string{"inspect", "--format", format}, containers...)...)
}

// named returns those lines of a docker list that begin with prefix.
func named(ctx context.Context, prefix string, list ...string) []string {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", list...).Output()
	if err != nil {
		return nil
	}
	var names []string
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}
