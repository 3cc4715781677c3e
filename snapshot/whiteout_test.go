package snapshot

import (
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
)

// whiteouts are changes of which a commit loses the second, and takes it for the removal of /etc/passwd.
func whiteouts() []container.FilesystemChange {
	return []container.FilesystemChange{
		{Kind: container.ChangeModify, Path: "/etc"}, {Kind: container.ChangeAdd, Path: "/etc/.wh.passwd"}, {Kind: container.ChangeDelete, Path: "/.wh.gone"},
	}
}

// warnings are those of one phase.
func warnings(got *enginetest.Events, phase string) []string {
	var texts []string
	for _, e := range got.All {
		if e.Phase == phase && e.Level == plan.LevelWarning {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

const loses = "the engine's commit loses /etc/.wh.passwd, and removes /etc/passwd: names that begin with .wh. mean a removal in an image"

// A commit takes a file named .wh.X for the removal of X.
func TestWhiteoutsMakeASnapshotIncomplete(t *testing.T) {
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{})
	web.Changes = whiteouts()
	var got enginetest.Events

	created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, got.Progress)
	assert.NilError(t, err)
	assert.Assert(t, created.Incomplete)
	assert.DeepEqual(t, created.Whiteouts, []string{"/etc/.wh.passwd"})
	assert.DeepEqual(t, warnings(&got, "inspect"), []string{loses + ". Rename it, and take another snapshot"})

	report, err := engineOf(docker).Verify(t.Context(), verify.Options{Words: []string{"web"}}, nil)
	assert.NilError(t, err)
	assert.Equal(t, report.Results[0].Verdict(), verify.Incomplete)
	assert.DeepEqual(t, report.Results[0].Findings, []verify.Finding{{Where: "image", Text: loses, Missing: true}})

	var told enginetest.Events
	_, err = engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web"}, told.Progress)
	assert.NilError(t, err)
	assert.Assert(t, slices.Contains(warnings(&told, "check"), "snapshot "+string(created.ID)+" is incomplete: "+loses), "%q", warnings(&told, "check"))
}

// A safety snapshot without such a file could not bring it back.
func TestReplaceRefusesToLoseWhiteouts(t *testing.T) {
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{})
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	web.Changes = whiteouts()
	o := replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}

	_, err := engineOf(docker).Replace(t.Context(), o, nil)
	assert.ErrorContains(t, err, "the safety snapshot of container web would not hold /etc/.wh.passwd: "+loses)
	assert.Assert(t, docker.FindContainer(web.ID) != nil, "it is untouched")
	o.NoSafety = true
	_, err = engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
}

// After a promote the copy is removed, with the files that its snapshot does not hold.
func TestPromoteRefusesToLoseWhiteouts(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{})
	snapshotOf(t, docker, capture.Options{Container: "web"})
	made, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web", Name: "trial"}, nil)
	assert.NilError(t, err)
	docker.FindContainer(made.ContainerID).Changes = whiteouts()

	_, err = engineOf(docker).Replace(t.Context(), replace.Options{Copy: "trial"}, nil)
	assert.ErrorContains(t, err, "container trial has /etc/.wh.passwd: "+loses)
	docker.FindContainer(made.ContainerID).Changes = nil
	_, err = engineOf(docker).Replace(t.Context(), replace.Options{Copy: "trial"}, nil)
	assert.NilError(t, err)
}

// An engine that cannot commit a name says only which name that was.
func TestCommitErrorNamesWhiteouts(t *testing.T) {
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{})
	web.Changes = []container.FilesystemChange{{Kind: container.ChangeAdd, Path: "/srv/.wh."}}

	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
	assert.Assert(t, err != nil && strings.Contains(err.Error(), "invalid whiteout name: .wh.") && strings.HasSuffix(err.Error(), ": rename /srv/.wh."), "%v", err)
}
