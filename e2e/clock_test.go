//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdClock gives a script a docker snapshot whose clock is as far ahead of the machine's as $CLOCK_AHEAD says, a duration that may
// be negative. The engine and its workers keep theirs.
func cmdClock(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 0, "clock")
	built, err := pluginWithClock()
	ts.Check(err)
	link := filepath.Join(ts.Getenv("DOCKER_CONFIG"), "cli-plugins", "docker-snapshot")
	ts.Check(os.Remove(link))
	ts.Check(os.Symlink(built, link))
}

// pluginWithClock builds the plugin with a package time that knows CLOCK_AHEAD, once, and returns its file. A Go program takes the
// time from the kernel without a system call or a library that could be told to answer something else. Everything imports that
// package, so all is compiled anew: tests of another engine wait for that, and find it in the cache.
var pluginWithClock = sync.OnceValues(func() (file string, err error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	library := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	source, err := os.Open(filepath.Join(library, "time.go"))
	if err != nil {
		return "", err
	}
	defer source.Close()
	if err := syscall.Flock(int(source.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", source.Name(), err)
	}
	now, err := io.ReadAll(source)
	if err != nil {
		return "", err
	}
	const read = "sec, nsec, mono := runtimeNow()\n"
	if bytes.Count(now, []byte(read)) != 1 {
		return "", errors.New("this Go reads the clock in another way than expected")
	}
	now = bytes.Replace(now, []byte(read), []byte(read+"\tsec += ahead\n"), 1)
	dir := filepath.Join(configDir, "clock")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	replaced := map[string]string{}
	for name, text := range map[string][]byte{"time.go": now, "ahead.go": []byte(aheadSource)} {
		replaced[filepath.Join(library, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return "", err
	}
	file = filepath.Join(dir, "docker-snapshot")
	return file, build(file, "..", "-overlay", overlay)
})

// aheadSource is added to package time.
const aheadSource = `package time

import "syscall"

// ahead is how many seconds this program's clock is ahead of the kernel's.
var ahead = func() int64 {
	text, isSet := syscall.Getenv("CLOCK_AHEAD")
	if !isSet {
		return 0
	}
	d, err := ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return int64(d / Second)
}()
`
