package snapshot

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
)

func stateOptions() capture.Options {
	o := withAttachments("")
	o.Line = "chat"
	return o
}

func TestAStateIsKeptAndFound(t *testing.T) {
	docker := enginetest.New()
	docker.Volumes = append(docker.Volumes, &enginetest.FakeVolume{Name: docker.Service.Store()})
	first := snapshotOf(t, docker, capture.Options{Line: "chat", Trigger: labels.TriggerInterval})
	s := snapshotOf(t, docker, stateOptions())
	assert.Equal(t, s.Kind, labels.KindState)
	assert.Equal(t, s.Line, "chat")
	assert.Equal(t, s.Parent, first.ID)
	for _, word := range []string{"chat", "chat:one", "chat:latest", string(s.ID)} {
		got, err := catOf(t, docker, word, "log")
		assert.NilError(t, err)
		assert.Equal(t, got, "\xff\x00")
	}
	assert.Assert(t, s.Root() != "")
	report, err := engineOf(docker).Verify(t.Context(), verify.Options{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(report.Results), 2)
	for _, r := range report.Results {
		assert.Equal(t, len(r.Findings), 0, "%v", r.Findings)
	}
	annotated, err := engineOf(docker).Annotate(t.Context(), capture.Annotation{Snapshot: "chat:one", Name: new("two")}, nil)
	assert.NilError(t, err)
	assert.Equal(t, annotated.Root(), s.Root())
	got, err := catOf(t, docker, "chat:two", "empty")
	assert.NilError(t, err)
	assert.Equal(t, got, "")
}

func TestNoContainerIsMadeOfAState(t *testing.T) {
	docker := enginetest.New()
	snapshotOf(t, docker, stateOptions())
	before := docker.World()
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "chat"}, nil)
	assert.ErrorContains(t, err, "is a state of line chat")
	_, err = engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "chat"}}, nil)
	assert.ErrorContains(t, err, "is a state of line chat")
	assert.Equal(t, docker.World(), before)
}

func TestALineAndAContainerHaveDifferentNames(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Line: "web"}, nil)
	assert.ErrorContains(t, err, "there is a container web")
	snapshotOf(t, docker, capture.Options{Container: "web"})
	docker.Containers = nil
	_, err = engineOf(docker).Create(t.Context(), capture.Options{Line: "web"}, nil)
	assert.ErrorContains(t, err, "or a snapshot of one")
	snapshotOf(t, docker, capture.Options{Line: "chat"})
	docker.Run(t, "chat")
	_, err = engineOf(docker).Create(t.Context(), capture.Options{Container: "chat"}, nil)
	assert.ErrorContains(t, err, "there is a line chat already")
	_, err = engineOf(docker).Create(t.Context(), capture.Options{Line: "a/b"}, nil)
	assert.ErrorContains(t, err, "invalid line")
}

func TestTheLastAutomaticStatesOfALineAreKept(t *testing.T) {
	docker := enginetest.New()
	var automatic []labels.ID
	docker.Randomness = 100
	for i := range 6 {
		docker.Randomness += 10
		o := stateOptions()
		o.Name = ""
		if i > 0 {
			o.Trigger = labels.TriggerInterval
		}
		s := snapshotOf(t, docker, o)
		if i > 0 {
			automatic = append(automatic, s.ID)
		}
	}
	docker.Randomness += 10
	snapshotOf(t, docker, capture.Options{Line: "other", Trigger: labels.TriggerInterval})
	assert.NilError(t, engineOf(docker).KeepLast(t.Context(), "chat", 2, nil))
	left, err := engineOf(docker).List(t.Context(), catalog.ListOptions{Container: "chat"}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(left), 3) // and the one that was taken by hand
	assert.Equal(t, left[0].ID, automatic[4])
	assert.Equal(t, left[1].ID, automatic[3])
	assert.NilError(t, engineOf(docker).KeepLast(t.Context(), "chat", 0, nil))
	left, err = engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(left), 4)
}

// The limit on the snapshots of a container is not about lines.
func TestPruneLeavesLinesToTheirOwnLimit(t *testing.T) {
	docker := enginetest.New()
	for range 12 {
		docker.Randomness += 10
		snapshotOf(t, docker, capture.Options{Line: "chat", Trigger: labels.TriggerInterval})
	}
	var o removal.PruneOptions
	o.Policy.MaxSnapshots = 10
	pruned, err := engineOf(docker).Prune(t.Context(), o, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(pruned.Removed()), 0)
	o.Limits.KeepLast = new(3)
	pruned, err = engineOf(docker).Prune(t.Context(), o, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(pruned.Removed()), 9)
}

func TestAStateIsWholeOrLeavesNothing(t *testing.T) {
	scene := func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := enginetest.New()
		snapshotOf(t, docker, capture.Options{Line: "chat", Trigger: labels.TriggerInterval})
		docker.Randomness = 100
		return docker
	}
	operate := func(ctx context.Context, e *Engine) error {
		_, err := e.Create(ctx, stateOptions(), nil)
		return err
	}
	kinds := []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultLoseAnswer, enginetest.FaultCancelBefore, enginetest.FaultCancelAfter}
	withFaults(t, kinds, scene, operate, func(t *testing.T, outcome enginetest.Outcome) {
		all, err := engineOf(outcome.Docker).List(t.Context(), catalog.ListOptions{}, nil)
		assert.NilError(t, err)
		switch {
		case outcome.Err == nil:
			assert.Equal(t, len(all), 2)
		case outcome.Kind == enginetest.FaultRefuse && outcome.Hit("ImageRemove"):
		default:
			assert.Equal(t, len(all), 1)
			assert.Assert(t, strings.HasSuffix(all[0].Refs[len(all[0].Refs)-1], ":latest"), "%v", all[0].Refs)
		}
	})
}

func TestAKeyMakesOneState(t *testing.T) {
	o := stateOptions()
	o.IdempotencyKey = "k"
	scene := func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := enginetest.New()
		docker.Randomness = 100
		return docker
	}
	operate := func(ctx context.Context, e *Engine) error {
		_, err := e.Create(ctx, o, nil)
		return err
	}
	withFaults(t, []enginetest.FaultKind{enginetest.FaultDie, enginetest.FaultLoseAnswer}, scene, operate, func(t *testing.T, outcome enginetest.Outcome) {
		outcome.Docker.ClientDies()
		first, second := snapshotOf(t, outcome.Docker, o), snapshotOf(t, outcome.Docker, o)
		assert.Equal(t, first.ID, second.ID)
		all, err := engineOf(outcome.Docker).List(t.Context(), catalog.ListOptions{}, nil)
		assert.NilError(t, err)
		assert.Equal(t, len(all), 1)
	})
}

// A call that is skipped leaves nothing; only the first one after a fall marks the last snapshot.
func TestByUsageASnapshotIsTakenAtAThreshold(t *testing.T) {
	for name, o := range map[string]capture.Options{"a container": {Container: "web"}, "a line": {Line: "chat"}} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			docker.Run(t, "web")
			at := func(usage float64) capture.Created {
				docker.Randomness += 10
				o.Trigger, o.Usage = labels.TriggerThreshold, &capture.Usage{Now: usage, Thresholds: []float64{0.85}}
				created, err := engineOf(docker).Create(t.Context(), o, nil)
				assert.NilError(t, err)
				return created
			}
			before := docker.World()
			assert.Equal(t, at(0.5).Skipped, "usage 0.5 is below the threshold 0.85")
			assert.Equal(t, docker.World(), before)
			first := at(0.91)
			assert.Equal(t, first.Skipped, "")
			assert.Equal(t, *first.Usage, 0.91)
			before = docker.World()
			assert.Assert(t, strings.Contains(at(0.95).Skipped, string(first.ID)))
			assert.Equal(t, docker.World(), before)
			assert.Assert(t, at(0.3).Skipped != "")
			marked, err := engineOf(docker).Resolve(t.Context(), string(first.ID))
			assert.NilError(t, err)
			assert.Equal(t, *marked.UsageLow, 0.3)
			before = docker.World()
			assert.Assert(t, at(0.2).Skipped != "")
			assert.Equal(t, docker.World(), before)
			assert.Equal(t, at(0.85).Skipped, "")
			o.RunID = "run" // which has none so far
			assert.Equal(t, at(0.86).Skipped, "")
			assert.Assert(t, at(0.87).Skipped != "")
			o.Usage.Force = true
			created, err := engineOf(docker).Create(t.Context(), o, nil)
			assert.NilError(t, err)
			assert.Equal(t, created.Skipped, "")
		})
	}
}

// Requests decide while others take their snapshots: still there is one of each threshold.
func TestOfManyAtAThresholdOneTakesASnapshot(t *testing.T) {
	for name, o := range map[string]capture.Options{
		"a container": {Container: "web"}, "a line": {Line: "chat"}, "a run": {Container: "web", RunID: "r"}, "a name": {Container: "web", Name: "full"},
	} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			docker.Run(t, "web")
			docker.Service.Waiting = func(string) {}
			var group sync.WaitGroup
			var taken, skipped atomic.Int32
			for range 5 {
				group.Go(func() {
					o := o
					o.Trigger, o.Usage = labels.TriggerThreshold, &capture.Usage{Now: 0.9, Thresholds: []float64{0.85}}
					created, err := engineOf(docker).Create(t.Context(), o, nil)
					assert.Check(t, err)
					if created.Skipped == "" {
						taken.Add(1)
					} else {
						skipped.Add(1)
					}
				})
			}
			group.Wait()
			assert.Equal(t, taken.Load(), int32(1))
			assert.Equal(t, skipped.Load(), int32(4))
			all, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
			assert.NilError(t, err)
			assert.Equal(t, len(all), 1)
		})
	}
}

func TestAKeyHasTheSameAnswerAtTheSameUsage(t *testing.T) {
	docker := enginetest.New()
	o := capture.Options{Line: "chat", IdempotencyKey: "k", Trigger: labels.TriggerThreshold, Usage: &capture.Usage{Now: 0.9, Thresholds: []float64{0.85}}}
	assert.Equal(t, snapshotOf(t, docker, o).ID, snapshotOf(t, docker, o).ID)
}
