package commands

import (
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
)

func TestCpTakesASourceApart(t *testing.T) {
	for _, test := range []struct{ source, volume, path string }{
		{"before:/etc/hosts", "", "/etc/hosts"},
		{"web:" + string(firstID) + ":/", "", "/"},
		{"before:/data:/x", "", "/data:/x"}, // the engine knows where volumes are mounted
		{"before:data:/x/.", "data", "/x/."},
		{"web:" + string(firstID) + ":data:/x:/y", "data", "/x:/y"},
	} {
		f := newFixture()
		f.engine.list = append(f.engine.list, firstSnapshot())
		assert.Equal(t, f.run(t, "cp", test.source, "there"), 0, f.stderr.String())
		assert.Equal(t, f.engine.dest, "there")
		assert.Equal(t, f.engine.source.Snapshot.ID, firstID, test.source)
		assert.Equal(t, f.engine.source.Volume, test.volume, test.source)
		assert.Equal(t, f.engine.source.Path, test.path, test.source)
	}
}

func TestCpWritesATarToStdout(t *testing.T) {
	f := newFixture()
	f.engine.list = append(f.engine.list, firstSnapshot())
	assert.Equal(t, f.run(t, "cp", "before:/etc", "-"), 0, f.stderr.String())
	assert.Equal(t, f.stdout.String(), "a\xff\x1b\n")
}

func TestCpRefuses(t *testing.T) {
	for _, test := range []struct {
		source, destination, message string
		status                       int
	}{
		{"before:etc/hosts", "x", "name a path that begins with a slash", 1},
		{"before", "x", "name a path that begins with a slash", 1},
		{":/etc", "x", "snapshot", 1},
		{"none:/etc", "x", "no such snapshot: none", 1},
		{"before:none:/etc", "x", "no such snapshot: before:none", 1},
		{"before:/etc", "", "the destination is empty", 1},
	} {
		f := newFixture()
		f.engine.list = append(f.engine.list, firstSnapshot())
		assert.Equal(t, f.run(t, "cp", test.source, test.destination), test.status, test.source)
		assert.Assert(t, is.Contains(f.stderr.String(), test.message))
		assert.Equal(t, f.engine.calls, 0)
	}
}

func TestCpCompletesPaths(t *testing.T) {
	for line, want := range map[string][]string{
		"snapshot cp web:b|":          {"web:before:/"},
		"snapshot cp before:/|":       {"before:/bin/", "before:/boot.log", "before:/etc/"},
		"snapshot cp before:/x/b|":    {"before:/x/bin/", "before:/x/boot.log"},
		"snapshot cp before:data:/e|": {"before:data:/etc/"},
		"snapshot cp none:/|":         nil,
		"snapshot cp before:/x |":     nil,
	} {
		f := newFixture()
		f.engine.list = append(f.engine.list, firstSnapshot())
		assert.DeepEqual(t, complete(t, f, line), want)
		if line == "snapshot cp before:/x/b|" {
			assert.Equal(t, f.engine.source.Path, "/x/")
		}
	}
}

func TestSumsAreOnlyTakenIfTheyAreShown(t *testing.T) {
	for format, want := range map[string]archives.Detail{"": archives.Listed, "json": archives.Summed, "{{.Path}}": archives.Listed, "{{.SHA256}}": archives.Summed} {
		p, err := parsePrinter(format, nil)
		assert.NilError(t, err)
		assert.Equal(t, p.fileDetail(), want, format)
	}
}
