package commands

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
)

func TestAttachReadsFilesAndStdin(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	file := filepath.Join(t.TempDir(), "file")
	assert.NilError(t, os.WriteFile(file, []byte("\xff\x00"), 0o600))
	f := newFixture()
	f.stdin = "from stdin"
	f.engine.created.Snapshot = firstSnapshot()
	assert.Equal(t, f.run(t, "create", "--attach", "in=-", "--attach", "a=b="+file, "web"), 125, "a file of that name is not there")
	assert.Equal(t, f.engine.calls, 0)
	assert.Equal(t, f.run(t, "create", "--attach", "in=-", "--attach", "x="+file, "web"), 0, f.stderr.String())
	assert.DeepEqual(t, f.engine.attached, []string{"in=from stdin", "x=\xff\x00"})
	left, err := os.ReadDir(dir)
	assert.NilError(t, err)
	assert.Equal(t, len(left), 0, "the copy of stdin is still there")
}

func TestAttachRefusesWithoutAskingTheEngine(t *testing.T) {
	for _, tc := range []struct{ args, message string }{
		{"create --attach x web", "use NAME=FILE"},
		{"create --attach x= web", "use NAME=FILE"},
		{"create --attach =/etc/hostname web", "it names no file"},
		{"create --attach a/b=/etc/hostname web", "slash"},
		{"create --attach x=/nowhere/file web", "no such file"},
		{"create --attach x=/ web", "is a directory"},
		{"create --attach x=- --attach y=- web", "stdin can be read only once"},
	} {
		f := newFixture()
		assert.Equal(t, f.run(t, strings.Fields(tc.args)...), 125, tc.args)
		assert.Assert(t, is.Contains(f.stderr.String(), tc.message))
		assert.Equal(t, f.engine.calls, 0)
	}
}

func TestCat(t *testing.T) {
	f := newFixture()
	f.engine.list = append(f.engine.list, firstSnapshot())
	assert.Equal(t, f.run(t, "cat", "before", "log"), 0, f.stderr.String())
	assert.Equal(t, f.stdout.String(), "a\xff\n")
	assert.Equal(t, f.run(t, "cat", "before", "other"), 1)
	assert.Assert(t, is.Contains(f.stderr.String(), `has no attachment "other"`))
	assert.Equal(t, f.run(t, "cat", "before"), 125)
}

// A file has the whole attachment, or is as it was. JSON says what was written, or why not.
func TestCatToAFile(t *testing.T) {
	f := newFixture()
	f.engine.list = append(f.engine.list, firstSnapshot())
	name := filepath.Join(t.TempDir(), "log")
	content := func() string {
		bytes, err := os.ReadFile(name)
		assert.NilError(t, err)
		return string(bytes)
	}
	assert.NilError(t, os.WriteFile(name, []byte("former"), 0o600))
	f.engine.err = errors.New("it is damaged")
	assert.Equal(t, f.run(t, "cat", "--output", name, "--format", "json", "before", "log"), 1)
	assert.Equal(t, content(), "former")
	var result map[string]any
	assert.NilError(t, json.Unmarshal(f.stdout.Bytes(), &result))
	assert.Equal(t, result["status"], "error")
	f.engine.err = nil
	f.stdout.Reset()
	assert.Equal(t, f.run(t, "cat", "--output", name, "--format", "json", "before", "log"), 0, f.stderr.String())
	assert.Equal(t, content(), "a\xff\n")
	clear(result)
	assert.NilError(t, json.Unmarshal(f.stdout.Bytes(), &result))
	at := firstSnapshot().Attachments[0]
	assert.DeepEqual(t, result, map[string]any{
		"status": "written", "timestamp": rfc3339(noon), "id": string(firstID), "file": name,
		"name": "log", "size": float64(at.Bytes), "sha256": at.SHA256, "media_type": at.MediaType,
	})
	f.stdout.Reset()
	assert.Equal(t, f.run(t, "cat", "-o", name, "before", "log"), 0, f.stderr.String())
	assert.Equal(t, f.stdout.String(), "")
	assert.Equal(t, f.run(t, "cat", "--format", "json", "before", "log"), 125)
	assert.Assert(t, is.Contains(f.stdout.String(), "\"code\":\"usage\""))
	assert.Assert(t, is.Contains(f.stderr.String(), "--format needs --output"))
	left, err := os.ReadDir(filepath.Dir(name))
	assert.NilError(t, err)
	assert.Equal(t, len(left), 1)
}

func TestRestoreSaysWhereAttachmentsGo(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "restore", "--attachments", "here", "web"), 0, f.stderr.String())
	assert.Equal(t, f.engine.restore.Attachments, "here")
}
