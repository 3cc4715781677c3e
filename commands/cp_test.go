package commands

import (
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
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
