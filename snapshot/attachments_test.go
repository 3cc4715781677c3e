package snapshot

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// withAttachments are the options of a snapshot with attachments: JSON, bytes, and nothing.
func withAttachments(container string) capture.Options {
	return capture.Options{Container: container, Name: "one", Attachments: []capture.Attachment{
		{Name: "state.json", Content: strings.NewReader(`{"a":[1,2]}`)},
		{Name: "log", Content: strings.NewReader("\xff\x00")},
		{Name: "empty", Content: strings.NewReader("")},
	}}
}

// attachedScene is an engine with container web, which has no volume, db, which has one, and a
// snapshot of each with attachments.
func attachedScene(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	docker.Run(t, "web")
	docker.Create(t, "db", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}}).State = "running"
	for _, name := range []string{"web", "db"} {
		snapshotOf(t, docker, withAttachments(name))
	}
	docker.Randomness = 100
	docker.ForgetCalls()
	return docker
}

func catOf(t *testing.T, docker *enginetest.Docker, word, name string) (string, error) {
	t.Helper()
	s, err := engineOf(docker).Resolve(t.Context(), word)
	assert.NilError(t, err)
	var out bytes.Buffer
	err = engineOf(docker).Attachment(t.Context(), s, name, &out)
	return out.String(), err
}

func TestAttachmentsAreRecordedAndComeBack(t *testing.T) {
	docker := attachedScene(t)
	for _, name := range []string{"web", "db"} {
		s, err := engineOf(docker).Resolve(t.Context(), name+":one")
		assert.NilError(t, err)
		assert.Equal(t, len(s.Attachments), 3)
		assert.Equal(t, s.Attachments[0].MediaType, "application/json")
		assert.Equal(t, s.Attachments[1].Bytes, int64(2))
		assert.Equal(t, s.Attachments[2].SHA256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
		assert.Assert(t, s.Store != "")
		for attachment, want := range map[string]string{"state.json": `{"a":[1,2]}`, "log": "\xff\x00", "empty": ""} {
			got, err := catOf(t, docker, name+":one", attachment)
			assert.NilError(t, err)
			assert.Equal(t, got, want)
		}
		_, err = catOf(t, docker, name+":one", "other")
		assert.Assert(t, cerrdefs.IsNotFound(err))
		removed := engineOf(docker).Remove(t.Context(), []string{name + ":one"}, removal.Options{}, nil)
		assert.NilError(t, removed[0].Err)
		assert.Assert(t, docker.Service.Attached[string(s.ID)] == nil, "the attachments are still there")
	}
}

func TestADamagedAttachmentIsAnError(t *testing.T) {
	docker := attachedScene(t)
	s, err := engineOf(docker).Resolve(t.Context(), "web:one")
	assert.NilError(t, err)
	dir := filepath.Join(t.TempDir(), "out")
	for _, damage := range []string{`{"a":[1,3]}`, `{"a":[1,2]`, `{"a":[1,2]} `, ""} {
		docker.Service.Attached[string(s.ID)]["state.json"] = damage
		_, err := catOf(t, docker, "web:one", "state.json")
		assert.Assert(t, cerrdefs.IsDataLoss(err), "%q: %v", damage, err)
		before := docker.World()
		_, err = engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Attachments: dir}, nil)
		assert.Assert(t, cerrdefs.IsDataLoss(err), "%v", err)
		assert.Equal(t, docker.World(), before)
		assert.Equal(t, filesIn(t, filepath.Dir(dir)), "")
	}
}

func TestAttachmentsAreChecked(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	before := docker.World()
	of := func(name, content string) []capture.Attachment {
		return []capture.Attachment{{Name: name, Content: strings.NewReader(content)}}
	}
	many := make([]capture.Attachment, labels.MaxAttachments+1)
	for want, attachments := range map[string][]capture.Attachment{
		"names no file":        of("..", ""),
		"slash":                of("a/b", ""),
		"two attachments":      append(of("a", ""), of("a", "")...),
		"1001 attachments":     many,
		"it ends too soon":     of("a.json", `{"a":`),
		"is not JSON: it ends": of("a.json", ""),
		"there is more":        of("a.json", "{} {}"),
		"invalid character":    of("a.json", "{a}"),
	} {
		_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Attachments: attachments}, nil)
		assert.ErrorContains(t, err, want)
		assert.Equal(t, docker.World(), before)
	}
	for _, content := range []string{`"text"`, "null", "[]", " {\"a\": [true, {}]}\n"} {
		_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Attachments: of("a.json", content)}, nil)
		assert.NilError(t, err)
	}
}

// filesIn lists all below a directory, each file with its content.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	var found strings.Builder
	assert.NilError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		content, err := os.ReadFile(path)
		if info.IsDir() {
			content, err = []byte(info.Mode().String()), nil
		}
		found.WriteString(name + "=" + string(content) + "\n")
		return err
	}))
	return found.String()
}

// Whatever goes wrong in a restore, the directory has all attachments if it is done, and is as it
// was if it failed.
func TestRestoredAttachmentsAreAllThereOrNone(t *testing.T) {
	t.Parallel()
	ways := map[string]func(context.Context, *Engine, string) error{
		"copy": func(ctx context.Context, e *Engine, dir string) error {
			_, err := e.Restore(ctx, runconfig.RestoreOptions{Snapshot: "db:one", Attachments: dir}, nil)
			return err
		},
		"in place": func(ctx context.Context, e *Engine, dir string) error {
			_, err := e.Replace(ctx, replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "db:one", Attachments: dir}}, nil)
			return err
		},
	}
	for name, restore := range ways {
		for _, there := range []bool{false, true} {
			var parent, before string
			scene := func(t *testing.T) *enginetest.Docker {
				t.Helper()
				parent = t.TempDir()
				if there {
					assert.NilError(t, os.Mkdir(filepath.Join(parent, "out"), 0o700))
				}
				before = filesIn(t, parent)
				return attachedScene(t)
			}
			operate := func(ctx context.Context, e *Engine) error { return restore(ctx, e, filepath.Join(parent, "out")) }
			t.Run(name, func(t *testing.T) {
				withEachFault(t, scene, operate, func(t *testing.T, o enginetest.Outcome) {
					if o.Err != nil {
						assert.Equal(t, filesIn(t, parent), before)
						return
					}
					assert.Assert(t, strings.HasSuffix(filesIn(t, parent), "out/empty=\nout/log=\xff\x00\nout/state.json={\"a\":[1,2]}\n"), filesIn(t, parent))
				})
			})
		}
	}
}

func TestAttachmentsOverwriteNothing(t *testing.T) {
	docker := attachedScene(t)
	dir := t.TempDir()
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	before := docker.World()
	for _, to := range []string{dir, filepath.Join(dir, "mine"), filepath.Join(dir, "none", "none")} {
		for _, dry := range []bool{false, true} {
			o := runconfig.RestoreOptions{Snapshot: "web:one", Attachments: to, DryRun: dry}
			_, err := engineOf(docker).Restore(t.Context(), o, nil)
			assert.ErrorContains(t, err, "write attachments to "+to)
			_, err = engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: o}, nil)
			assert.ErrorContains(t, err, "write attachments to "+to)
		}
	}
	assert.Equal(t, docker.World(), before)
	assert.Equal(t, filesIn(t, dir), "mine=\n")
}

// A create with attachments that fails, or is killed, leaves no snapshot; what it left in the store
// goes with the next sweep.
func TestCreateWithAttachmentsIsWholeOrLeavesNothing(t *testing.T) {
	scene := func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := enginetest.New()
		docker.Run(t, "web")
		return docker
	}
	operate := func(ctx context.Context, e *Engine) error {
		_, err := e.Create(ctx, withAttachments("web"), nil)
		return err
	}
	withEachFault(t, scene, operate, func(t *testing.T, o enginetest.Outcome) {
		s, err := engineOf(o.Docker).Resolve(t.Context(), "web:one")
		if o.Err == nil {
			assert.NilError(t, err)
			assert.Equal(t, len(o.Docker.Service.Attached[string(s.ID)]), 3)
			return
		}
		_, none := errors.AsType[*catalog.NotFoundError](err)
		assert.Assert(t, none, "%v", err)
		if !o.Hit("remove archives") {
			assert.Equal(t, len(o.Docker.Service.Attached), 0)
		}
	})
}
