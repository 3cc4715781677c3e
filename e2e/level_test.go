package e2e

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// levelVariable names the level of the tests: quickLevel, or everything.
const (
	levelVariable = "E2E_LEVEL"
	quickLevel    = "quick"
)

// bothEngines is the second line of a script that runs on both engines in the quick level.
const bothEngines = "# engines: both"

// quickScripts returns the scripts that the quick level runs on an engine.
func quickScripts(files []string, engine string) ([]string, error) {
	var quick []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines := strings.SplitN(string(text), "\n", 3)
		if len(lines) == 3 && lines[1] == bothEngines || engineOf(file) == engine {
			quick = append(quick, file)
		}
	}
	return quick, nil
}

// engineOf returns the engine that runs a script in the quick level. It depends on the script's name alone: a new script moves no
// other one.
func engineOf(file string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(filepath.Base(file)))
	return []string{"debian", "moby"}[hash.Sum32()>>16%2]
}

func TestEveryScriptIsInTheQuickLevel(t *testing.T) {
	all, err := filepath.Glob("testdata/*.txtar")
	assert.NilError(t, err)
	debian, err := quickScripts(all, "debian")
	assert.NilError(t, err)
	moby, err := quickScripts(all, "moby")
	assert.NilError(t, err)
	either := slices.Concat(debian, moby)
	slices.Sort(either)
	assert.DeepEqual(t, slices.Compact(either), all)
	both := len(debian) + len(moby) - len(all)
	assert.Assert(t, both >= 30 && both <= 50, "%d scripts run on both engines", both)
	for name, scripts := range map[string][]string{"debian": debian, "moby": moby} {
		assert.Assert(t, 3*len(scripts) > len(all), "only %d scripts run on %s", len(scripts), name)
	}
}

// A misspelt or misplaced header would leave its script on one engine.
func TestHeadersOfScripts(t *testing.T) {
	all, err := filepath.Glob("testdata/*.txtar")
	assert.NilError(t, err)
	for _, file := range all {
		text, err := os.ReadFile(file)
		assert.NilError(t, err)
		for n, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "# engines:") {
				assert.Assert(t, n == 1 && line == bothEngines, "%s:%d: %s", file, n+1, line)
			}
		}
	}
}
