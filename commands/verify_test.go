package commands

import (
	"context"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
)

// verifyingEngine answers verify.
type verifyingEngine struct {
	fakeEngine
	asked   verify.Options
	drilled *snapshot.DrillOptions
	report  verify.Report
}

func (e *verifyingEngine) Verify(_ context.Context, o verify.Options, _ plan.Progress) (verify.Report, error) {
	e.asked = o
	return e.report, nil
}

func (e *verifyingEngine) Drill(_ context.Context, o snapshot.DrillOptions, _ plan.Progress) (verify.Report, error) {
	e.drilled = &o
	return e.report, nil
}

func TestVerifyWithARestore(t *testing.T) {
	f, eng := newFixture(), &verifyingEngine{report: verify.Report{Results: []verify.Result{{
		Word: "before", Snapshot: firstSnapshot(), Findings: []verify.Finding{{Where: "restore", Text: "container web-1 did not stay up"}},
	}}}}
	f.evil = eng
	assert.Equal(t, f.run(t, "verify", "--restore", "--settle", "5s", "before"), 3)
	assert.Equal(t, f.stdout.String(), string(firstID)+"  damaged\n  restore: container web-1 did not stay up\n")
	assert.Equal(t, eng.drilled.Settle, 5*time.Second)
	assert.Assert(t, eng.drilled.Wait)
	for _, args := range []string{"--restore --quick before", "--settle 5s before", "--restore"} {
		assert.Equal(t, f.run(t, append([]string{"verify"}, strings.Fields(args)...)...), 125, args)
	}
}

func TestVerifyPrintsALineForEach(t *testing.T) {
	rotten := verify.Finding{Where: "volume data", Text: "the copy of \"a\" in snapshots/x/0.tar is damaged: its SHA-256 is not what it was"}
	gone := verify.Finding{Where: "volumes", Text: "the store cua-snapshots is gone", Missing: true}
	for _, tc := range []struct {
		name           string
		args           []string
		results        []verify.Result
		status         int
		stdout, stderr string
	}{
		{
			"whole",
			[]string{"before"},
			[]verify.Result{{Word: "before", Snapshot: firstSnapshot()}},
			0,
			string(firstID) + "  ok\n", "",
		},
		{
			"damaged and incomplete",
			[]string{"--all"},
			[]verify.Result{{Snapshot: firstSnapshot(), Findings: []verify.Finding{rotten, gone}}, {Snapshot: secondSnapshot(), Findings: []verify.Finding{gone}}},
			3,
			string(firstID) + "  damaged\n  volume data: the copy of \"a\" in snapshots/x/0.tar is damaged: its SHA-256 is not what it was\n" +
				"  volumes: the store cua-snapshots is gone\n" + string(secondID) + "  incomplete\n  volumes: the store cua-snapshots is gone\n",
			"2 of 2 snapshots are not whole (incomplete or damaged)\n",
		},
		{
			"gone",
			[]string{"gone", "before"},
			[]verify.Result{{Word: "gone", Err: &catalog.NotFoundError{Word: "gone"}}, {Word: "before", Snapshot: firstSnapshot()}},
			1,
			string(firstID) + "  ok\n", "no such snapshot: gone\n'docker snapshot ls' lists the snapshots there are\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			eng := &verifyingEngine{report: verify.Report{Results: tc.results}}
			eng.list = []catalog.Snapshot{firstSnapshot(), secondSnapshot()}
			f.evil = eng
			assert.Equal(t, f.run(t, append([]string{"verify"}, tc.args...)...), tc.status)
			assert.Equal(t, f.stdout.String(), tc.stdout)
			assert.Equal(t, f.stderr.String(), tc.stderr)
		})
	}
}

func TestVerifyNeedsSnapshotsOrAll(t *testing.T) {
	for _, args := range [][]string{{"verify"}, {"verify", "--all", "web"}} {
		assert.Equal(t, newFixture().run(t, args...), 125)
	}
}
