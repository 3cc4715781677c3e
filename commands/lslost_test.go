package commands

import (
	"context"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// lostList is a lost snapshot that is kept for days, and one whose time is over.
func lostList() []archives.Lost {
	first, second := firstSnapshot(), secondSnapshot()
	for _, s := range []*catalog.Snapshot{&first, &second} {
		s.ImageID, s.Refs = "", nil
	}
	return []archives.Lost{
		{Snapshot: second, Since: noon.Add(-8 * 24 * time.Hour), Until: noon.Add(-24 * time.Hour), Foreign: true},
		{Snapshot: first, Since: noon.Add(-2 * time.Hour), Until: noon.Add(7*24*time.Hour - 2*time.Hour)},
	}
}

func TestLostOutput(t *testing.T) {
	for _, tc := range []struct {
		golden string
		args   []string
	}{
		{"ls-lost-table.golden", nil},
		{"ls-quiet.golden", []string{"-q"}},
		{"ls-lost-json.golden", []string{"--format", "json"}},
		{"ls-lost-template.golden", []string{"--format", "{{.ID}} {{.LostSince}} {{.KeptUntil}} {{.Foreign}} {{.Container}}"}},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			f := newFixture()
			f.engine.lost = lostList()
			assert.Equal(t, f.run(t, append([]string{"ls", "--lost"}, tc.args...)...), 0, f.stderr.String())
			golden.Assert(t, f.stdout.String(), tc.golden)
			assert.Equal(t, f.stderr.String(), "")
		})
	}
}

func TestLostOptions(t *testing.T) {
	for args, want := range map[string]string{
		"--only rootfs --replace": "conflicting options: --lost and --only rootfs",
		"--volumes none":          "conflicting options: --lost and --volumes none",
		"--volumes shared":        "conflicting options: --lost and --volumes shared",
		"--replace --force -m 1g": "conflicting options: --lost, --replace and --memory",
	} {
		t.Run(args, func(t *testing.T) {
			f := newFixture()
			assert.Equal(t, f.run(t, append([]string{"restore", "--lost", string(firstID)}, strings.Fields(args)...)...), 125)
			assert.Assert(t, strings.Contains(f.stderr.String(), want), f.stderr.String())
			assert.Equal(t, f.engine.calls, 0)
		})
	}
	f := newFixture()
	assert.Equal(t, f.run(t, "restore", "--lost", string(firstID)), 0, f.stderr.String())
	assert.Assert(t, f.engine.restore.Lost)
}

// lostOnly is an engine that has nothing but lost snapshots.
type lostOnly struct{ *fakeEngine }

func (e lostOnly) Lost(context.Context, catalog.ListOptions, plan.Progress) ([]archives.Lost, error) {
	return e.lost, nil
}

// Advice mentions lost snapshots only if there are some.
func TestAdviceAboutLostSnapshots(t *testing.T) {
	for _, lost := range [][]archives.Lost{nil, lostList()} {
		f := newFixture()
		f.engine.lost, f.engine.err = lost, &catalog.NotFoundError{Word: "web:gone"}
		f.evil = lostOnly{f.engine}
		assert.Equal(t, f.run(t, "restore", "web:gone"), 1)
		assert.Equal(t, strings.Contains(f.stderr.String(), "docker snapshot ls --lost"), lost != nil, f.stderr.String())
	}
}

func TestACleanUpIsAdvised(t *testing.T) {
	f := newFixture()
	f.engine.events = []plan.Event{{Level: plan.LevelWarning, Text: "gone", Topic: plan.TopicCleaned}}
	assert.Equal(t, f.run(t, "ls"), 0)
	assert.Assert(t, strings.Contains(f.stderr.String(), "gone. 'docker snapshot ls --lost' lists those"), f.stderr.String())
	assert.Assert(t, strings.Contains(f.stderr.String(), "docker snapshot protect"), f.stderr.String())
}
