package exclude

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

var (
	gitRounds = flag.Int("git-rounds", 500, "how many generated trees are compared with git check-ignore")
	gitSeed   = flag.Uint64("git-seed", 1, "the seed of the first")
)

// TestGitignoreMeansWhatGitSaysItMeans compares generated .gitignore files, over generated trees, with git check-ignore.
func TestGitignoreMeansWhatGitSaysItMeans(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "", "init", "-q")
	ignored := 0
	for round := range *gitRounds {
		seed := *gitSeed + uint64(round)
		g := &generator{rand.New(rand.NewPCG(seed, 0))}
		entries := g.tree(t, dir)
		want := checkIgnore(t, dir, entries)
		got := leftOut(t, dir)
		if !slices.Equal(got, want) {
			t.Fatalf("-git-seed %d -git-rounds 1: left out %q\ngit ignores %q\n%s", seed, got, want, describe(t, dir))
		}
		ignored += len(got)
		for _, e := range entries {
			assert.NilError(t, os.RemoveAll(filepath.Join(dir, e)))
		}
	}
	assert.Assert(t, ignored > *gitRounds, "the patterns are not much of a test: %d entries ignored", ignored)
}

// generator makes trees of few names, and patterns that are likely to match them.
type generator struct{ *rand.Rand }

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g *generator) name() string {
	return g.pick("a", "b", "ab", "ba", "abc", "a.b", "b.log", "A", "a b", "a ", "#a", "!b", "a*b", "[a]", "ä", "-", `a\b`, ".a", "a]")
}

// tree makes a tree of entries, and .gitignore files in it. It returns all but the latter.
func (g *generator) tree(t *testing.T, root string) []string {
	t.Helper()
	dirs, entries := []string{""}, []string{}
	for range 12 + g.IntN(20) {
		path := filepath.Join(dirs[g.IntN(len(dirs))], g.name())
		if slices.Contains(entries, path) || strings.Count(path, "/") > 4 {
			continue
		}
		entries = append(entries, path)
		if g.IntN(2) == 0 {
			dirs = append(dirs, path)
			assert.NilError(t, os.Mkdir(filepath.Join(root, path), 0o700))
			continue
		}
		assert.NilError(t, os.WriteFile(filepath.Join(root, path), nil, 0o600))
	}
	for i, dir := range dirs {
		if i > 0 && g.IntN(3) > 0 {
			continue
		}
		assert.NilError(t, os.WriteFile(filepath.Join(root, dir, ".gitignore"), []byte(g.gitignore()), 0o600))
	}
	return entries
}

func (g *generator) gitignore() string {
	var text strings.Builder
	if g.IntN(10) == 0 {
		text.WriteString("\ufeff")
	}
	for range 1 + g.IntN(5) {
		text.WriteString(g.pattern() + g.pick("", "", "", "", " ", "  ", `\ `, "\r"))
		text.WriteString(g.pick("\n", "\n", "\n", "\n\n", "\n#\n"))
	}
	return strings.TrimSuffix(text.String(), g.pick("", "\n"))
}

func (g *generator) pattern() string {
	var p strings.Builder
	p.WriteString(g.pick("", "", "", "", "!", "!", "/", "/", "!/", "**/", `\!`, `\#`))
	for i := range 1 + g.IntN(3) {
		if i > 0 {
			p.WriteString(g.pick("/", "/", "/", "/**/", "**/", "/**", `\/`, "***/"))
		}
		p.WriteString(g.part())
	}
	p.WriteString(g.pick("", "", "", "", "/", "/**", "/*", `\`, "//"))
	return p.String()
}

func (g *generator) part() string {
	if g.IntN(2) == 0 {
		return g.name()
	}
	var p strings.Builder
	for range 1 + g.IntN(4) {
		p.WriteString(g.pick("a", "b", "*", "*", "?", "**", "[ab]", "[!a]", "[^b]", "[a-c]", "[[:alpha:]]", "[[:punct:]b]", "[]a]", "[a", `\a`,
			`\*`, ".", "c", "[-a]", `[\]a]`, "[[:no:]]", "[b-]", "[/a]", "[a-\\c]", "[[:alpha:]-z]", "[:a:]", "[[:a]", "ä", "[ä]", "log", " "))
	}
	return p.String()
}

// leftOut is what a matcher leaves out of a tree, with all that is in it.
func leftOut(t *testing.T, root string) []string {
	t.Helper()
	m := New(labels.Exclusions{Gitignore: true}, nil)
	out := []string{}
	var below string
	assert.NilError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := strings.CutPrefix(strings.TrimPrefix(path, root), "/")
		switch {
		case d.Name() == ".git":
			return fs.SkipDir
		case below != "" && strings.HasPrefix(name, below):
			out = append(out, name)
			return nil
		}
		verdict, err := m.Visit(name, d.IsDir())
		if err != nil {
			return err
		}
		if verdict != Take {
			out, below = append(out, name), name+"/"
			return nil
		}
		if d.IsDir() && m.WantsGitignore() {
			text, _ := os.ReadFile(filepath.Join(path, ".gitignore"))
			assert.Assert(t, m.Gitignore(text))
		}
		return nil
	}))
	return sortedEntries(out)
}

// checkIgnore is what git ignores of some entries.
func checkIgnore(t *testing.T, root string, entries []string) []string {
	t.Helper()
	asked := make([]string, 0, len(entries))
	for _, e := range entries {
		asked = append(asked, "./"+e)
	}
	var ignored []string
	for path := range strings.SplitSeq(git(t, root, strings.Join(asked, "\x00"), "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
		if path != "" {
			ignored = append(ignored, strings.TrimPrefix(path, "./"))
		}
	}
	return sortedEntries(ignored)
}

// sortedEntries leaves out the .gitignore files, which nobody asks git about.
func sortedEntries(all []string) []string {
	all = slices.DeleteFunc(all, func(e string) bool { return filepath.Base(e) == ".gitignore" })
	slices.Sort(all)
	return all
}

func git(t *testing.T, dir, in string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "XDG_CONFIG_HOME=/nowhere")
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) { // 1: nothing is ignored
		t.Fatalf("git %v: %v\n%s", args, err, &failed)
	}
	return string(out)
}

func describe(t *testing.T, root string) string {
	t.Helper()
	var text strings.Builder
	assert.NilError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		if d.Name() == ".gitignore" {
			content, _ := os.ReadFile(path)
			fmt.Fprintf(&text, "%s: %q\n", path, content)
		}
		return err
	}))
	return text.String()
}
