package commands

import (
	"errors"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

func someChanges() []diff.Change {
	return []diff.Change{
		{Volume: diff.Rootfs, Destination: "/", FileChange: volumebackup.FileChange{Path: "etc/motd", Type: changes.Modified, SizeDelta: 12}},
		{Volume: "web-data", Destination: "/data", FileChange: volumebackup.FileChange{Path: "a\nb", Type: changes.Created, SizeDelta: 3}},
		{Volume: "web-data", Destination: "/data", FileChange: volumebackup.FileChange{Path: "old", Type: changes.Deleted, SizeDelta: -2000}},
	}
}

const (
	someSums = "rootfs: 0 created, 1 modified, 0 deleted, 0 with other permissions, +12B\n" +
		"web-data (/data): 1 created, 0 modified, 1 deleted, 0 with other permissions, -1.997kB\n"
	someFiles = "C /etc/motd\n" + `A "/data/a\nb"` + "\n" + "D /data/old\n"
)

// The ID stays alone on stdout, whatever is said of changes.
func TestCreateShowsWhatChangedSinceTheParent(t *testing.T) {
	for args, want := range map[string]string{"--changes": someSums, "--changes --files": someFiles + someSums, "--changes -q": someSums} {
		f := newFixture()
		f.engine.created = capture.Created{Snapshot: firstSnapshot()}
		f.engine.changes = someChanges()
		assert.Equal(t, f.run(t, append([]string{"create", "web"}, strings.Fields(args)...)...), 0)
		assert.Equal(t, f.stdout.String(), string(firstID)+"\n")
		assert.Equal(t, f.stderr.String(), want)
		assert.DeepEqual(t, f.engine.diff, diff.Options{Old: "20260313-000000-000000", New: "web:" + string(firstID)})
	}
}

// The snapshot is made, so what cannot be compared is no failure.
func TestCreateSaysWhyItDoesNotCompare(t *testing.T) {
	f := newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot()}
	f.engine.diffErr = errors.New("the store is gone")
	assert.Equal(t, f.run(t, "create", "--changes", "web"), 0)
	assert.Equal(t, f.stdout.String(), string(firstID)+"\n")
	const warning = "what changed since snapshot 20260313-000000-000000 is not known: the store is gone"
	assert.Equal(t, f.stderr.String(), "WARNING: "+warning+"\n")
	f.stdout.Reset()
	assert.Equal(t, f.run(t, "create", "--changes", "--format", "{{json .Changes}} {{json .Warnings}}", "web"), 0)
	assert.Equal(t, f.stdout.String(), `null ["`+warning+`"]`+"\n")

	f = newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot()}
	f.engine.created.Parent = ""
	assert.Equal(t, f.run(t, "create", "--changes", "web"), 0)
	assert.Equal(t, f.stderr.String(), "nothing to compare with: the snapshot has no parent\n")
	f.stdout.Reset()
	assert.Equal(t, f.run(t, "create", "--changes", "--format", "{{json .Parent}} {{json .Changes}} {{json .Warnings}}", "web"), 0)
	assert.Equal(t, f.stdout.String(), `"" null []`+"\n")
}

// A comparison that nobody asked for takes nobody's time, and one that shows nothing is an empty list.
func TestCreateComparesIfAsked(t *testing.T) {
	f := newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot()}
	assert.Equal(t, f.run(t, "create", "--format", "{{json .Changes}}", "web"), 0)
	assert.DeepEqual(t, f.engine.diff, diff.Options{})
	assert.Equal(t, f.run(t, "create", "--changes", "--format", "{{json .Changes}}", "web"), 0)
	assert.Equal(t, f.stdout.String(), "null\n"+`{"counts":[],"list":[]}`+"\n")
	assert.Equal(t, f.run(t, "create", "--files", "web"), 125)
	assert.Equal(t, f.run(t, "create", "--changes", "--state-only"), 125)
}
