package commands

import (
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
)

func content(text string) extract.File { return extract.File{IsThere: true, Content: []byte(text)} }

func TestDiffOfContent(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after extract.File
		want          string
	}{
		"changed":    {content("a\nb\n"), content("a\nc"), "--- web:one:/etc/app\n+++ now:/etc/app\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"},
		"same":       {content("a\n"), content("a\n"), "no changes\n"},
		"new":        {extract.File{}, content("a\n"), "--- /dev/null\n+++ now:/etc/app\n@@ -0,0 +1,1 @@\n+a\n"},
		"gone":       {content("a\n"), extract.File{}, "--- web:one:/etc/app\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n"},
		"new, empty": {extract.File{}, content(""), "--- /dev/null\n+++ now:/etc/app\n"},
		"binary":     {content("a\n"), content("a\x00"), "Binary files web:one:/etc/app and now:/etc/app differ\n"},
		"no UTF-8":   {content("a\xff"), content("a"), "Binary files web:one:/etc/app and now:/etc/app differ\n"},
		"controls":   {content("a\x1b[2J\n"), content("b\r\n"), "--- web:one:/etc/app\n+++ now:/etc/app\n@@ -1,1 +1,1 @@\n-a\x1b[2J\n+b\r\n"},
	} {
		f := newFixture()
		f.engine.files = [2]extract.File{tc.before, tc.after}
		assert.Equal(t, f.run(t, "diff", "--content", "etc/app", "web:one"), 0, name)
		assert.Equal(t, f.stdout.String(), tc.want, name)
		assert.DeepEqual(t, f.engine.diff, diff.Options{Old: "web:one"})
		assert.Equal(t, f.engine.path, "/etc/app")
	}
}

// On a terminal it is coloured, unless somebody does not want that; what a file says never acts on the terminal.
func TestDiffOfContentOnATerminal(t *testing.T) {
	for noColour, want := range map[string]string{
		"":  "\x1b[1m--- web:one:/a\x1b[0m\n\x1b[1m+++ web:two:/a\x1b[0m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n a\n\x1b[31m--- b\\u001b[2J\x1b[0m\n\x1b[32m+++ c\x1b[0m\n",
		"1": "--- web:one:/a\n+++ web:two:/a\n@@ -1,2 +1,2 @@\n a\n--- b\\u001b[2J\n+++ c\n",
	} {
		f := newFixture()
		f.engine.files = [2]extract.File{content("a\n-- b\x1b[2J\n"), content("a\n++ c\n")}
		f.environment = map[string]string{"NO_COLOR": noColour}
		d := f.deps()
		d.out.SetIsTerminal(true)
		root := newRoot(d)
		root.SetArgs([]string{"diff", "--content", "/a", "web:one", "web:two"})
		assert.NilError(t, root.ExecuteContext(t.Context()))
		assert.Equal(t, f.stdout.String(), want)
		assert.DeepEqual(t, f.engine.diff, diff.Options{Old: "web:one", New: "web:two"})
	}
}

func TestDiffOfContentRefuses(t *testing.T) {
	for _, args := range [][]string{{"--stat"}, {"--path", "a"}, {"--volume", "a"}, {"--format", "json"}, {"--content", "/"}, {"--content", ""}} {
		f := newFixture()
		assert.Equal(t, f.run(t, append([]string{"diff", "web:one", "--content", "/a"}, args...)...), 125, args)
		assert.Equal(t, f.engine.calls, 0)
	}
	f := newFixture()
	f.engine.err = &extract.TooLargeError{Path: "/a", Bytes: 2_000_000}
	assert.Equal(t, f.run(t, "diff", "web:one", "--content", "/a"), 1)
	assert.Assert(t, is.Contains(f.stderr.String(), `"/a" has 2000000 bytes: the limit is 1048576`))
	assert.Assert(t, is.Contains(f.stderr.String(), "docker snapshot cp SNAPSHOT:/a DEST"))
}
