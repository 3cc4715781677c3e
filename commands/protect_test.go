package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

func TestAPruneFilterIsAdded(t *testing.T) {
	const own = `"label!=cua.snapshot.version"`
	for name, tc := range map[string]struct{ before, after, err string }{
		"no file":     {"", "{\n\t\"pruneFilters\": [" + own + "]\n}\n", ""},
		"empty":       {"{}", "{\n\t\"pruneFilters\": [" + own + "]\n}", ""},
		"one line":    {`{"b":1,"a":2}`, `{"b":1,"a":2, "pruneFilters": [` + own + `]}`, ""},
		"indented":    {"{\n  \"b\": {\"x\": [1]},\n  \"A\": \"}\"\n}\n", "{\n  \"b\": {\"x\": [1]},\n  \"A\": \"}\",\n  \"pruneFilters\": [" + own + "]\n}\n", ""},
		"beside":      {`{"pruneFilters": ["label=a" ], "z": 1.50}`, `{"pruneFilters": ["label=a", ` + own + ` ], "z": 1.50}`, ""},
		"other case":  {`{"PruneFilters":["x"]}`, `{"PruneFilters":["x", ` + own + `]}`, ""},
		"the last":    {`{"pruneFilters":["x"],"PRUNEFILTERS":[]}`, `{"pruneFilters":["x"],"PRUNEFILTERS":[` + own + `]}`, ""},
		"null":        {`{"pruneFilters":null}`, `{"pruneFilters":[` + own + `]}`, ""},
		"there":       {`{"pruneFilters":["x",` + own + `]}`, "", ""},
		"nested":      {`{"plugins":{"pruneFilters":["x"]}}`, `{"plugins":{"pruneFilters":["x"]}, "pruneFilters": [` + own + `]}`, ""},
		"no list":     {`{"pruneFilters":"x"}`, "", "pruneFilters is no list of filters"},
		"no object":   {`[]`, "", "it is no JSON object"},
		"no JSON":     {`{"a":`, "", "EOF"},
		"two objects": {`{} {}`, "", "something follows the JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			after, missing, err := withPruneFilter([]byte(tc.before))
			if tc.err != "" {
				assert.ErrorContains(t, err, tc.err)
				return
			}
			assert.NilError(t, err)
			assert.Equal(t, missing, tc.after != "")
			if missing {
				assert.Equal(t, string(after), tc.after)
			}
			_, again, err := withPruneFilter(after)
			assert.NilError(t, err)
			assert.Assert(t, !again)
		})
	}
}

func FuzzPruneFilter(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"a":1}`, `{"pruneFilters":["x"]}`, `{"PruneFilters":null, "pruneFilters":[ ]}`, "{\n\"a\" : {\"b\":\"}\"}\n}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, before []byte) {
		after, missing, err := withPruneFilter(before)
		if err != nil || !missing {
			return
		}
		var was, is map[string]json.RawMessage
		if strings.TrimSpace(string(before)) != "" {
			assert.NilError(t, json.Unmarshal(before, &was))
		}
		assert.NilError(t, json.Unmarshal(after, &is), "%s", after)
		for key, value := range was {
			if !strings.EqualFold(key, keyPruneFilters) {
				assert.Equal(t, string(is[key]), string(value), "%s", after)
			}
		}
		var docker struct{ PruneFilters []string }
		assert.NilError(t, json.Unmarshal(after, &docker))
		assert.Equal(t, docker.PruneFilters[len(docker.PruneFilters)-1], pruneFilter)
		_, again, err := withPruneFilter(after)
		assert.NilError(t, err)
		assert.Assert(t, !again, "%s", after)
	})
}

func TestProtect(t *testing.T) {
	for version, isOld := range map[string]bool{"28.5.2": true, "20.10.24+dfsg1": true, "29.0.0": false, "30.1.0-rc.1": false, "": true} {
		dir := t.TempDir()
		f := newFixture()
		f.configFile, f.cliVersion = filepath.Join(dir, "new", "config.json"), version
		assert.Equal(t, f.run(t, "protect"), 0, f.stderr.String())
		assert.Equal(t, f.stdout.String(), f.configFile+"\n")
		assert.Equal(t, strings.Contains(f.stderr.String(), "alias docker-prune="), isOld, version)
		text, err := os.ReadFile(f.configFile)
		assert.NilError(t, err)
		assert.Assert(t, strings.Contains(string(text), pruneFilter))
	}
}

// A link stays a link, nobody else may read what nobody could, and nothing else is left in the folder.
func TestProtectKeepsTheFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "real.json")
	assert.NilError(t, os.WriteFile(target, []byte(`{"auths":{}}`), 0o640))
	f := newFixture()
	f.configFile = filepath.Join(dir, "config.json")
	assert.NilError(t, os.Symlink("real.json", f.configFile))
	for _, changed := range []string{"true", "false"} {
		assert.Equal(t, f.run(t, "protect", "--format", "{{.Changed}} {{.Effective}}"), 0, f.stderr.String())
		assert.Equal(t, f.stdout.String(), changed+" false\n")
		f.stdout.Reset()
	}
	info, err := os.Stat(target)
	assert.NilError(t, err)
	assert.Equal(t, info.Mode().Perm(), os.FileMode(0o640))
	link, err := os.Readlink(f.configFile)
	assert.NilError(t, err)
	assert.Equal(t, link, "real.json")
	left, err := os.ReadDir(dir)
	assert.NilError(t, err)
	assert.Equal(t, len(left), 2)

	assert.NilError(t, os.WriteFile(target, []byte(`{"pruneFilters":7}`), 0o640))
	assert.Equal(t, f.run(t, "protect"), 1)
	text, err := os.ReadFile(target)
	assert.NilError(t, err)
	assert.Equal(t, string(text), `{"pruneFilters":7}`)
}
