package commands

import (
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
)

func TestAnnotateOptions(t *testing.T) {
	f := newFixture()
	f.engine.list = append(f.engine.list, firstSnapshot())
	assert.Equal(t, f.run(t, "annotate", "--name", "", "--tag", "a", "--untag", "b", "--meta", "k=v", "--unmeta", "l", "--unpin", "before"), 0, f.stderr.String())
	a := f.engine.annotated
	assert.Equal(t, *a.Name, "")
	assert.Assert(t, a.Description == nil && a.Expires == nil)
	assert.Equal(t, *a.Pinned, false)
	assert.DeepEqual(t, a.Tag, []string{"a"})
	assert.DeepEqual(t, a.Untag, []string{"b"})
	assert.DeepEqual(t, a.Meta, map[string]string{"k": "v"})
	assert.DeepEqual(t, a.Unmeta, []string{"l"})
	assert.Equal(t, f.stdout.String(), string(firstID)+"\n")

	assert.Equal(t, f.run(t, "annotate", "-m", "why", "--pin", "--expires", "", "--format", "json", "before"), 0, f.stderr.String())
	a = f.engine.annotated
	assert.Equal(t, *a.Description, "why")
	assert.Assert(t, *a.Pinned && a.Expires.IsZero() && a.Name == nil)
	assert.Assert(t, is.Contains(f.stdout.String(), `"status":"annotated"`))
}

func TestAnnotateRefusesWithoutAskingTheEngine(t *testing.T) {
	for message, args := range map[string][]string{
		"nothing to change":   {"annotate", "before"},
		"--pin and --unpin":   {"annotate", "--pin", "--unpin", "before"},
		"requires 1 argument": {"annotate", "--pin"},
		"use key=value":       {"annotate", "--meta", "k", "before"},
	} {
		f := newFixture()
		assert.Equal(t, f.run(t, args...), 125)
		assert.Assert(t, is.Contains(f.stderr.String(), message))
		assert.Equal(t, f.engine.calls, 0)
	}
}
