package labels_test

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestCheckExclusions(t *testing.T) {
	var none *labels.Exclusions
	assert.NilError(t, none.Check())
	assert.Assert(t, none.IsEmpty())
	assert.Assert(t, (&labels.Exclusions{Included: []string{"a"}}).IsEmpty())
	assert.NilError(t, (&labels.Exclusions{Patterns: []string{"a", "/a", "a/", "a b/*", "..."}, Globs: []string{"*", "[a-z]?", `\*`, "ä"}, Gitignore: true}).Check())
	for want, e := range map[string]labels.Exclusions{
		"more than":              {Patterns: make([]string, 600), Globs: make([]string, 600)},
		"that is kept is none":   {Kept: &labels.KeptArchive{Snapshot: "20260101-000000-abcdef", Root: "ab"}},
		"a negative number":      {Entries: -1},
		`invalid pattern ""`:     {Patterns: []string{""}},
		`invalid pattern "/"`:    {Patterns: []string{"/"}},
		`invalid pattern "//a"`:  {Included: []string{"//a"}},
		`invalid pattern "a/.."`: {Patterns: []string{"a/.."}},
		`invalid pattern "[a"`:   {Globs: []string{"[a"}},
		`invalid pattern "a/*"`:  {Globs: []string{"a/*"}},
		"it is longer than":      {Patterns: []string{strings.Repeat("a", 5000)}},
	} {
		assert.ErrorContains(t, e.Check(), want)
	}
}
