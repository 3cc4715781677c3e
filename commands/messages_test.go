package commands

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"
)

// sentence is what people read: words with a blank between them.
var sentence = regexp.MustCompile(`[A-Za-z%]['")\]:,;]* [A-Za-z%'"(\[]`)

// messagesOf are the texts in a source file that people may see, each once.
func messagesOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	assert.NilError(t, err)
	var texts []string
	known := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec, *ast.Field: // tags are for no reader
			return false
		case *ast.BasicLit:
			if node.Kind != token.STRING {
				return false
			}
			text, err := strconv.Unquote(node.Value)
			assert.NilError(t, err)
			if sentence.MatchString(text) && !known[text] {
				known[text] = true
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

// Every message and help text stands in one file, to be read in one sitting. After
// a change: go test ./commands -run TestEveryMessage -update.
func TestEveryMessage(t *testing.T) {
	var all strings.Builder
	for _, root := range []string{"../commands", "../labels", "../plugin", "../snapshot", "../volumebackup"} {
		assert.NilError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			texts := messagesOf(t, path)
			if len(texts) > 0 {
				fmt.Fprintf(&all, "\n== %s\n", filepath.ToSlash(strings.TrimPrefix(path, "../")))
			}
			for _, text := range texts {
				fmt.Fprintf(&all, "%s\n", strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    "))
			}
			return nil
		}))
	}
	golden.Assert(t, all.String(), "messages.golden")
}

// What users can type is in advice.go. The engine speaks of docker's --rm, which is a
// property of a container.
func TestTheEngineNamesNoFlagAndNoCommand(t *testing.T) {
	ours := regexp.MustCompile(`--[a-z][a-z-]+|docker snapshot [a-z]+`)
	assert.NilError(t, filepath.WalkDir("../snapshot", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, text := range messagesOf(t, path) {
			found := ours.FindString(strings.ReplaceAll(text, "--rm", ""))
			assert.Assert(t, found == "", "%s: %q", path, text)
		}
		return nil
	}))
}
