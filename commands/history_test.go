package commands

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
	"gotest.tools/v3/golden"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// withHistory is a fixture with a container that was restored in place and as a copy, and with labels that mean harm.
func withHistory() *fixture {
	const evil = "</dd><script src=\"https://example.org/x.js\">alert(1)</script>\x1b[2J"
	f := newFixture()
	start := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	add := func(id labels.ID, minutes int, parent labels.ID, containerID string, change func(*catalog.Snapshot)) {
		s := firstSnapshot()
		s.ID, s.Created, s.Parent, s.Name = id, start.Add(time.Duration(minutes)*time.Minute), parent, ""
		s.Container.ID, s.Trigger, s.Mounts, s.Size = containerID, labels.TriggerManual, []labels.Mount{s.Mounts[0]}, 1000
		archive := *s.Mounts[0].Archive
		s.Mounts[0].Archive = &archive
		change(&s)
		f.engine.list = append(f.engine.list, s)
	}
	const one, two, safety, four labels.ID = "20260314-090000-000001", "20260314-091000-000002", "20260314-092000-000003", "20260314-112500-000004"
	add(four, 145, one, "new", func(s *catalog.Snapshot) {
		s.Name, s.Description = "kept", evil
		s.Mounts[0].Archive = &labels.Archive{Root: strings.Repeat("2f", 32), Entries: 15, Bytes: 5_000_100, Stored: 4096}
	})
	add(safety, 20, two, "old", func(s *catalog.Snapshot) {
		s.Trigger, s.Restores, s.Mounts[0].Archive.Stored = labels.TriggerPreRestore, one, 0
	})
	add(two, 10, one, "old", func(s *catalog.Snapshot) { s.Meta = map[string]string{evil: evil}; s.Mounts[0].Archive.Stored = 0 })
	add(one, 0, "", "old", func(s *catalog.Snapshot) { s.Name = "first" })
	f.engine.restores = []catalog.Restore{
		{Snapshot: one, At: start.Add(21 * time.Minute), Container: "web", ContainerID: "new", InPlace: true, Safety: safety, RunID: "42"},
		{Snapshot: one, At: start.Add(150 * time.Minute), Container: "copy", ContainerID: "copy"},
	}
	f.engine.running = []container.Summary{
		{ID: "new", Names: []string{"/web"}, State: "running"}, {ID: "copy", Names: []string{"/copy"}, State: "exited"},
	}
	f.engine.changes = []diff.Change{changed("/data", evil, changes.Created, 100)}
	return f
}

func changed(destination, name string, how changes.Type, bytes int64) diff.Change {
	return diff.Change{Volume: "data", Destination: destination, FileChange: volumebackup.FileChange{Path: protocol.Path(name), Type: how, SizeDelta: bytes}}
}

// The page names up to a thousand changes of a snapshot, and then how many more there are. It compares fifty snapshots.
func TestHistoryPageIsBounded(t *testing.T) {
	f := withHistory()
	f.engine.changes = slices.Repeat([]diff.Change{changed("/data", "file", changes.Modified, 1)}, mostListed+5)
	for i := range mostCompared {
		s := f.engine.list[0]
		s.ID, s.Created = labels.ID(fmt.Sprintf("20260315-0900%02d-000000", i)), s.Created.Add(time.Hour)
		f.engine.list = append(f.engine.list, s)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	assert.Equal(t, f.run(t, "history", "--html", file, "web"), 0, f.stderr.String())
	page, err := os.ReadFile(file)
	assert.NilError(t, err)
	assert.Equal(t, strings.Count(string(page), "C /data/file\n"), mostCompared*mostListed)
	assert.Equal(t, strings.Count(string(page), "5 more changes, which this command lists:"), mostCompared)
	assert.Equal(t, strings.Count(string(page), "This page compares the newest 50 snapshots."), 3)
	assert.Equal(t, strings.Count(string(page), "data (/data): 0 created, 1005 modified, 0 deleted"), mostCompared)
}

// What cannot be compared keeps nobody from the rest.
func TestHistoryPageSaysWhyThereAreNoChanges(t *testing.T) {
	f := withHistory()
	f.engine.diffErr = errors.New("the store is gone\x1b")
	file := filepath.Join(t.TempDir(), "page.html")
	assert.Equal(t, f.run(t, "history", "--html", file, "web"), 0, f.stderr.String())
	page, err := os.ReadFile(file)
	assert.NilError(t, err)
	assert.Equal(t, strings.Count(string(page), `<p>They could not be compared: the store is gone\u001b</p>`), 3)
}

func TestHistoryText(t *testing.T) {
	f := withHistory()
	assert.Equal(t, f.run(t, "history", "web"), 0, f.stderr.String())
	golden.Assert(t, f.stdout.String(), "history.golden")
	assert.Equal(t, f.engine.listed.Container, "web")
}

// Of several containers, each line says which.
func TestHistoryTextOfSeveralContainers(t *testing.T) {
	f := withHistory()
	f.engine.list[0].Container.Name = "db"
	assert.Equal(t, f.run(t, "history"), 0, f.stderr.String())
	lines := strings.Split(f.stdout.String(), "\n")
	assert.Assert(t, is.Regexp(`^ +SNAPSHOT ID +CONTAINER +NAME `, lines[0]))
	assert.Assert(t, is.Regexp(`20260314-112500-000004 +db +kept `, f.stdout.String()))
	assert.Assert(t, is.Regexp(`20260314-090000-000001 +web +first `, f.stdout.String()))
	assert.Assert(t, is.Regexp(`restored +copy +[0-9]`, f.stdout.String()))
}

func TestHistoryPage(t *testing.T) {
	f := withHistory()
	file := filepath.Join(t.TempDir(), "page.html")
	assert.NilError(t, os.WriteFile(file, []byte("old"), 0o600))
	assert.Equal(t, f.run(t, "history", "--html", file, "web"), 0, f.stderr.String())
	assert.Equal(t, f.stdout.String(), "")
	page, err := os.ReadFile(file)
	assert.NilError(t, err)
	golden.Assert(t, string(page), "history.html.golden")
	for _, no := range []string{"<script", "\x1b", " src=\"", "url(", "@import", "<link", " href=\""} {
		assert.Assert(t, !strings.Contains(string(page), no), no)
	}
	assert.Assert(t, is.Contains(string(page), "&lt;script src="))
	left, err := os.ReadDir(filepath.Dir(file))
	assert.NilError(t, err)
	assert.Equal(t, len(left), 1)
}

func TestHistoryPageIsWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	assert.NilError(t, os.Mkdir(file, 0o755)) // a directory is in its place
	f := withHistory()
	assert.Equal(t, f.run(t, "history", "--html", file, "web"), 1)
	assert.Assert(t, is.Contains(f.stderr.String(), "write page: "))
	left, err := os.ReadDir(dir)
	assert.NilError(t, err)
	assert.Equal(t, len(left), 1, "only what was there")
}

func TestHistoryPageTakesNoFormat(t *testing.T) {
	f := withHistory()
	assert.Equal(t, f.run(t, "history", "--html", "x", "--format", "json"), 125)
	assert.Equal(t, f.engine.calls, 0)
}

func TestAPageOfNothing(t *testing.T) {
	f := newFixture()
	file := filepath.Join(t.TempDir(), "page.html")
	assert.Equal(t, f.run(t, "history", "--html", file), 0, f.stderr.String())
	page, err := os.ReadFile(file)
	assert.NilError(t, err)
	assert.Assert(t, is.Contains(string(page), "There are no snapshots."))
}
