package exclude

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// walk visits entries, of which directories end with a slash, as a walk would. It returns what is taken, and those
// directories that are only searched with a question mark.
func walk(t *testing.T, m *Matcher, gitignores map[string]string, entries ...string) []string {
	t.Helper()
	var taken []string
	visit := func(name string, isDir bool) Verdict {
		verdict, err := m.Visit(name, isDir)
		assert.NilError(t, err)
		if isDir && m.WantsGitignore() {
			assert.Assert(t, m.Gitignore([]byte(gitignores[name])))
		}
		return verdict
	}
	visit("", true)
	skip := "\x00"
	for _, e := range entries {
		if strings.HasPrefix(e, skip) {
			continue
		}
		name, isDir := strings.CutSuffix(e, "/")
		switch visit(name, isDir) {
		case Take:
			taken = append(taken, e)
		case Search:
			taken = append(taken, e+"?")
		case LeaveOut:
			if isDir {
				skip = e
			}
		}
	}
	return taken
}

func TestPatterns(t *testing.T) {
	all := []string{
		"a.log", "build", "node_modules/", "node_modules/keep/", "node_modules/keep/it", "node_modules/other", "src/", "src/a.log", "src/build/",
		"src/build/x", "src/gen/", "src/gen/y",
	}
	for name, tc := range map[string]struct {
		rules labels.Exclusions
		want  []string
	}{
		"a name": {labels.Exclusions{Patterns: []string{"node_modules", "build"}}, []string{"a.log", "src/", "src/a.log", "src/gen/", "src/gen/y"}},
		"names in a row": {labels.Exclusions{Patterns: []string{"src/gen", "node_modules/"}}, []string{
			"a.log", "build", "src/", "src/a.log", "src/build/", "src/build/x",
		}},
		"from the root, and a directory": {labels.Exclusions{Patterns: []string{"/gen", "/build", "a.log/", "node_modules"}}, []string{
			"a.log", "src/", "src/a.log", "src/build/", "src/build/x", "src/gen/", "src/gen/y",
		}},
		"a glob": {labels.Exclusions{Globs: []string{"*.log", "node_*", "[bg]*"}}, []string{"src/"}},
		"included by a path": {labels.Exclusions{Patterns: []string{"node_modules", "src"}, Included: []string{"node_modules/keep"}}, []string{
			"a.log", "build", "node_modules/?", "node_modules/keep/", "node_modules/keep/it",
		}},
		"included by a name": {labels.Exclusions{Patterns: []string{"node_modules", "src"}, Included: []string{"y"}}, []string{
			"a.log", "build", "node_modules/?", "node_modules/keep/?", "src/?", "src/build/?", "src/gen/?", "src/gen/y",
		}},
		"included itself": {labels.Exclusions{Patterns: []string{"node_modules", "src"}, Included: []string{"/node_modules"}}, []string{
			"a.log", "build", "node_modules/", "node_modules/keep/", "node_modules/keep/it", "node_modules/other",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.NilError(t, tc.rules.Check())
			assert.DeepEqual(t, walk(t, New(tc.rules, nil), nil, all...), tc.want)
		})
	}
}

// A repository of which half is missing is of no use.
func TestNoGitignoreReachesIntoGit(t *testing.T) {
	m := New(labels.Exclusions{Gitignore: true}, nil)
	got := walk(t, m, map[string]string{"": "*\n!*.go\n", ".git": "*\n"}, ".git/", ".git/HEAD", ".git/logs/", ".git/logs/HEAD", ".gitx", "a.c", "a.go")
	assert.DeepEqual(t, got, []string{".git/", ".git/HEAD", ".git/logs/", ".git/logs/HEAD", "a.go"})
}

func TestWhatIsIncludedBeatsGitignore(t *testing.T) {
	m := New(labels.Exclusions{Gitignore: true, Included: []string{"dist/keep"}}, nil)
	got := walk(t, m, map[string]string{"": "dist/\n*.log\n", "dist": "!*\n"}, "a.log", "dist/", "dist/a", "dist/keep/", "dist/keep/b.log")
	assert.DeepEqual(t, got, []string{"dist/?", "dist/keep/", "dist/keep/b.log"})
}

// What an archive has is taken, also where a .gitignore leaves it out by now; only the directories on the way are entered.
func TestWhatIsKeptIsTaken(t *testing.T) {
	has := map[string]bool{"old": true, "old/there": true}
	m := New(labels.Exclusions{Gitignore: true}, func(path string) (bool, error) { return has[path], nil })
	got := walk(t, m, map[string]string{"": "old\nnew\n"}, "new/", "new/x", "old/", "old/more", "old/there")
	assert.DeepEqual(t, got, []string{"old/", "old/there"})
}

func TestALongGitignoreDoesNotCount(t *testing.T) {
	m := New(labels.Exclusions{Gitignore: true}, nil)
	_, err := m.Visit("", true)
	assert.NilError(t, err)
	assert.Assert(t, !m.Gitignore(make([]byte, MaxGitignore+1)))
	dir := ""
	for n := range maxHeld/MaxGitignore + 1 {
		dir += "/d"
		_, err = m.Visit(dir[1:], true)
		assert.NilError(t, err)
		assert.Equal(t, m.Gitignore(make([]byte, MaxGitignore)), n < maxHeld/MaxGitignore)
	}
	_, err = m.Visit("e", true)
	assert.NilError(t, err)
	assert.Assert(t, m.Gitignore(make([]byte, MaxGitignore)), "what the walk has left takes nothing")
}

// FuzzGitignore finds that no .gitignore and no path makes a matcher fail, and that a negation of everything takes everything.
func FuzzGitignore(f *testing.F) {
	for _, seed := range []string{"*.log\n", "!a/\n/b/**/c", "[[:alpha:]-z]\n[a", "a\\\n\\ ", "**/x/**", "\xff[\xfe-\xff]", strings.Repeat("*a", 200)} {
		f.Add([]byte(seed), "a/b/c", true)
	}
	f.Fuzz(func(t *testing.T, text []byte, name string, isDir bool) {
		if name == "" || len(text) > 8192 || len(name) > 4096 {
			return
		}
		for _, all := range [][]byte{text, append(append([]byte{}, text...), "\n!*\n"...)} {
			m := New(labels.Exclusions{Gitignore: true}, nil)
			_, _ = m.Visit("", true)
			m.Gitignore(all)
			verdict, err := m.Visit(name, isDir)
			assert.NilError(t, err)
			if len(all) > len(text) && !strings.Contains(name, "/") && verdict != Take {
				t.Errorf("%q is left out after !*", name)
			}
		}
	})
}

// FuzzPatterns finds that no pattern that passes its check makes a matcher fail; that what a pattern names is left out, and so
// is all that is in it; and that the same pattern takes it when it is included.
func FuzzPatterns(f *testing.F) {
	for _, seed := range []string{"node_modules", "src/build", "/data", "tmp/", " !keep", "!a", "\xff", "a\nb", ".git", "a/b/c/"} {
		f.Add(seed, "*.log")
	}
	f.Fuzz(func(t *testing.T, pattern, glob string) {
		if labels.CheckExclude(pattern) != nil || labels.CheckExcludeGlob(glob) != nil {
			return
		}
		named := strings.TrimSuffix(strings.TrimPrefix(pattern, "/"), "/")
		left := labels.Exclusions{Patterns: []string{pattern}, Globs: []string{glob}}
		assert.NilError(t, left.Check())
		if verdict := visitAll(t, New(left, nil), named); verdict != LeaveOut {
			t.Errorf("%q is not left out by %q", named, pattern)
		}
		left.Included = []string{pattern}
		if verdict := visitAll(t, New(left, nil), named); verdict != Take {
			t.Errorf("%q is not taken although %q includes it", named, pattern)
		}
	})
}

// visitAll visits the directories on the way to a directory, and then that. It returns the last verdict.
func visitAll(t *testing.T, m *Matcher, name string) Verdict {
	t.Helper()
	verdict, err := m.Visit("", true)
	assert.NilError(t, err)
	for i := range len(name) + 1 {
		if i == len(name) || name[i] == '/' {
			verdict, err = m.Visit(name[:i], true)
			assert.NilError(t, err)
		}
	}
	return verdict
}
