package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runs"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// runOf is a run of web with an interval.
func runOf(interval retention.Interval) runs.Options {
	policy := retention.Default()
	policy.Interval = interval
	return runs.Options{Container: "web", RunID: "42", Command: []string{"agent", "secret"}, Timeout: time.Minute, Policy: policy}
}

// ending is a command that ends at once with a status.
func ending(status int) runs.Command {
	return func(context.Context, session.Session) (int, error) { return status, nil }
}

// taken are the numbers and triggers of a run's snapshots.
func taken(s session.Session) string {
	var words []string
	for _, one := range s.Snapshots {
		words = append(words, fmt.Sprintf("%d %s", one.Number, one.Trigger))
	}
	return strings.Join(words, ", ")
}

func TestIntervalsOfARun(t *testing.T) {
	for interval, want := range map[retention.Interval]string{
		retention.IntervalManual: "", retention.IntervalRunStart: "0 run_start", retention.IntervalRunEnd: "0 run_end",
		retention.IntervalRunBoundaries: "0 run_start, 1 run_end", retention.IntervalEveryAction: "0 run_start, 1 after_action",
	} {
		t.Run(string(interval), func(t *testing.T) {
			docker := enginetest.New()
			docker.Run(t, "web")
			e := engineOf(docker)
			result, err := e.Run(t.Context(), runOf(interval), func(context.Context, session.Session) (int, error) {
				docker.Exec("web", "touch /x")
				return 0, nil
			}, nil)
			assert.NilError(t, err)
			assert.Equal(t, taken(result.Session), want)
			kept, err := e.Session(t.Context(), "42")
			assert.NilError(t, err)
			assert.DeepEqual(t, kept, result.Session)
			assert.Equal(t, kept.Status, session.StatusCompleted)
			assert.Equal(t, *kept.ExitCode, 0)
			assert.Assert(t, !kept.Ended.IsZero())
			assert.Assert(t, !strings.Contains(docker.World(), "untagged"), "an earlier session is left: %s", docker.World())
		})
	}
}

func TestTheSessionIsThereWhileTheCommandRuns(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	e := engineOf(docker)
	o := runOf(retention.IntervalRunStart)
	o.HideArguments = true
	_, err := e.Run(t.Context(), o, func(ctx context.Context, s session.Session) (int, error) {
		kept, err := e.Session(ctx, s.RunID)
		assert.NilError(t, err)
		assert.Equal(t, kept.Status, session.StatusUnfinished)
		assert.DeepEqual(t, kept.Command, []string{"agent"})
		assert.Equal(t, taken(kept), "0 run_start")
		created, err := e.Create(ctx, capture.Options{Container: "web", RunID: s.RunID}, nil)
		assert.NilError(t, err)
		assert.Equal(t, *created.Number, 1)
		assert.Equal(t, created.StepID, "1")
		return 3, nil
	}, nil)
	assert.NilError(t, err)
	all, err := e.Sessions(t.Context())
	assert.NilError(t, err)
	assert.Equal(t, taken(all[0]), "0 run_start, 1 manual")
	assert.Equal(t, all[0].Status, session.StatusFailed)
	list, err := e.List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(list), 2, "a session is no snapshot")
}

func TestWordsOfARun(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	e := engineOf(docker)
	result, err := e.Run(t.Context(), runOf(retention.IntervalRunBoundaries), ending(0), nil)
	assert.NilError(t, err)
	first, last := result.Session.Snapshots[0].ID, result.Session.Snapshots[1].ID
	found, err := engineOf(docker).Resolve(t.Context(), string(first))
	assert.NilError(t, err)
	assert.Equal(t, result.Session.Snapshots[0].Root, found.Root())
	assert.Assert(t, found.Root() != "")
	for word, want := range map[string]labels.ID{"42#0": first, "42#1": last, "42#-1": last, "42#-2": first} {
		s, err := e.Resolve(t.Context(), word)
		assert.NilError(t, err, word)
		assert.Equal(t, s.ID, want, word)
	}
	for word, want := range map[string]string{"42#2": "has taken 2", "42#-3": "has taken 2", "43#0": "there is no run 43"} {
		_, err := e.Resolve(t.Context(), word)
		assert.ErrorContains(t, err, want)
		assert.Assert(t, cerrdefs.IsNotFound(err))
	}
	docker.FindImage("cua-snapshot/web:" + string(last)).Tags = nil
	_, err = e.Resolve(t.Context(), "42#1")
	assert.ErrorContains(t, err, "was removed")
	s, err := e.Resolve(t.Context(), "42#-1") // the last that still exists
	assert.NilError(t, err)
	assert.Equal(t, s.ID, first)
	assert.NilError(t, e.RemoveSession(t.Context(), "42"))
	_, err = e.Session(t.Context(), "42")
	assert.ErrorContains(t, err, "no such run: 42")
	assert.Assert(t, cerrdefs.IsNotFound(e.RemoveSession(t.Context(), "42")))
}

// A client that was killed while it wrote to a session leaves an empty volume, for an hour; so does an engine that was killed
// while it made one, or that of a name.
func TestTheLockOfARunIsSwept(t *testing.T) {
	docker := enginetest.New()
	locks := map[string]map[string]string{
		"cua-snapshot-run-0123456789abcdef":  {labels.KeyVersion: labels.SchemaVersion, labels.KeyLock: "somebody"},
		"cua-snapshot-run-0000000000000000":  nil,
		"cua-snapshot-name-0000000000000000": nil,
	}
	others := map[string]map[string]string{
		"cua-snapshot-run-of-a-user":        nil,
		"cua-snapshot-run-1111111111111111": {"owner": "somebody"},
		"0000000000000000":                  nil,
	}
	volumes := maps.Clone(locks)
	maps.Copy(volumes, others)
	for name, made := range volumes {
		_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: name, Labels: made})
		assert.NilError(t, err)
	}
	e := engineOf(docker)
	docker.Wait(50 * time.Minute)
	e.Sweep(t.Context(), nil)
	for name := range volumes {
		assert.Assert(t, docker.FindVolume(name) != nil, name)
	}
	docker.Wait(20 * time.Minute)
	e.Sweep(t.Context(), nil)
	for name := range volumes {
		_, isLock := locks[name]
		assert.Equal(t, docker.FindVolume(name) == nil, isLock, name)
	}
}

func TestARunIsContinued(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	docker.Run(t, "db")
	e := engineOf(docker)
	before, err := e.Run(t.Context(), runOf(retention.IntervalRunStart), ending(1), nil)
	assert.NilError(t, err)
	assert.NilError(t, e.AnnotateSession(t.Context(), "42", []byte(`[1]`)))
	after, err := e.Run(t.Context(), runOf(retention.IntervalRunStart), ending(0), nil)
	assert.NilError(t, err)
	assert.Equal(t, taken(after.Session), "0 run_start, 1 run_start")
	assert.Equal(t, after.Session.Started, before.Session.Started)
	assert.Equal(t, after.Session.Status, session.StatusCompleted)
	assert.Equal(t, string(after.Session.NetworkEvents), `[1]`)
	s, err := e.Resolve(t.Context(), "42#1")
	assert.NilError(t, err)
	assert.Equal(t, s.Parent, after.Session.Snapshots[0].ID)
	o := runOf(retention.IntervalRunStart)
	o.Container = "db"
	_, err = e.Run(t.Context(), o, ending(0), nil)
	assert.ErrorContains(t, err, "run 42 is a run of container web")
}

func TestNothingIsTakenIfThatIsSwitchedOff(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	o := runOf(retention.IntervalEveryAction)
	o.Policy.Enabled, o.RestoreOnFailure = false, true
	var events enginetest.Events
	result, err := engineOf(docker).Run(t.Context(), o, func(context.Context, session.Session) (int, error) {
		docker.Exec("web", "touch /x")
		return 1, nil
	}, events.Progress)
	assert.NilError(t, err)
	assert.Equal(t, result.Status, 1)
	assert.Equal(t, taken(result.Session), "")
	assert.Equal(t, len(events.Warnings()), 1)
}

func TestASnapshotThatFailsDoesNotStopTheRun(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	docker.Refused = []string{"ContainerCommit"}
	var events enginetest.Events
	result, err := engineOf(docker).Run(t.Context(), runOf(retention.IntervalRunBoundaries), ending(5), events.Progress)
	assert.NilError(t, err)
	assert.Equal(t, result.Status, 5)
	assert.Equal(t, taken(result.Session), "")
	assert.Equal(t, result.Session.Next, 0, "a number that was not used is given to the next one")
	assert.Equal(t, len(events.Warnings()), 2, "%q", events.Warnings())
}

func TestAHealthcheckIsNoAction(t *testing.T) {
	docker := enginetest.New()
	c := docker.Create(t, "web", &container.Config{Healthcheck: &container.HealthConfig{Test: []string{"CMD-SHELL", "ok"}}}, &container.HostConfig{})
	assert.NilError(t, docker.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
	docker.Run(t, "db")
	result, err := engineOf(docker).Run(t.Context(), runOf(retention.IntervalEveryAction), func(context.Context, session.Session) (int, error) {
		docker.Exec("web", "/bin/sh -c ok")
		docker.Exec("db", "touch /x")
		docker.Connected("web", "front")
		docker.Connected("db", "front")
		return 0, nil
	}, nil)
	assert.NilError(t, err)
	assert.Equal(t, taken(result.Session), "0 run_start")
	assert.Equal(t, len(result.Session.EngineNetwork), 1)
	assert.Equal(t, result.Session.EngineNetwork[0].Network, "front")
}

func TestAFailureRestoresTheStart(t *testing.T) {
	docker := enginetest.New()
	c := docker.Run(t, "web")
	began := c.Files
	o := runOf(retention.IntervalManual)
	o.RestoreOnFailure = true
	e := engineOf(docker)
	result, err := e.Run(t.Context(), o, func(context.Context, session.Session) (int, error) {
		c.Files = "changed"
		return 1, nil
	}, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.FindContainer("web").Files, began)
	assert.Equal(t, len(result.Session.Restores), 1)
	assert.Equal(t, result.Session.Restores[0].Status, session.OutcomeRestored)
	assert.Equal(t, result.Session.Restores[0].Snapshot, result.Session.Snapshots[0].ID)
	again, err := e.Run(t.Context(), o, ending(0), nil)
	assert.NilError(t, err)
	assert.Equal(t, len(again.Session.Restores), 1, "a command that succeeds is not followed by a restore")
}

// A restore in place by the command itself is heard of, and shows in the session.
func TestARestoreDuringTheRun(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	e := engineOf(docker)
	var now string
	result, err := e.Run(t.Context(), runOf(retention.IntervalRunBoundaries), func(ctx context.Context, _ session.Session) (int, error) {
		o := replaceOptions()
		o.Snapshot = "42#0"
		_, err := e.Replace(ctx, o, nil)
		now = docker.FindContainer("web").ID
		return 0, err
	}, nil)
	assert.NilError(t, err)
	s, err := e.Resolve(t.Context(), "42#-1")
	assert.NilError(t, err)
	assert.Equal(t, s.Container.ID, now, "the last snapshot is of the container that took the place of the first")
	assert.Equal(t, s.Trigger, labels.TriggerRunEnd)
	assert.Equal(t, taken(result.Session), "0 run_start, 1 run_end")
}

func TestACommandThatCannotBeStarted(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	e, none := engineOf(docker), errors.New("no such command")
	_, err := e.Run(t.Context(), runOf(retention.IntervalRunStart), func(context.Context, session.Session) (int, error) { return 0, none }, nil)
	assert.ErrorIs(t, err, none)
	kept, err := e.Session(t.Context(), "42")
	assert.NilError(t, err)
	assert.Equal(t, kept.Status, session.StatusFailed)
	assert.Assert(t, kept.ExitCode == nil)
	_, err = e.Run(t.Context(), runs.Options{Container: "gone"}, ending(0), nil)
	assert.Assert(t, cerrdefs.IsNotFound(err))
}

// A client that was killed while it wrote a session holds nobody up for long.
func TestALockOfADeadClientIsBroken(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	e := engineOf(docker)
	_, err := e.Run(t.Context(), runOf(retention.IntervalManual), ending(0), nil)
	assert.NilError(t, err)
	docker.Refused = []string{"VolumeRemove"}
	assert.NilError(t, e.AnnotateSession(t.Context(), "42", []byte(`[1]`))) // it leaves its lock
	docker.Refused = nil
	assert.NilError(t, e.AnnotateSession(t.Context(), "42", []byte(`[2]`)))
	kept, err := e.Session(t.Context(), "42")
	assert.NilError(t, err)
	assert.Equal(t, string(kept.NetworkEvents), `[2]`)
}

// Whatever is removed meanwhile, the run can go back to its start; afterwards the limits hold.
func TestARunKeepsWithinItsLimits(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	e := engineOf(docker)
	o := runOf(retention.IntervalRunBoundaries)
	o.Override = func(p *retention.Policy) { p.MaxSnapshots = 3 }
	result, err := e.Run(t.Context(), o, func(ctx context.Context, s session.Session) (int, error) {
		for range 5 {
			_, err := e.Create(ctx, capture.Options{Container: "web", RunID: s.RunID, Trigger: labels.TriggerAfterAction}, nil)
			assert.NilError(t, err)
		}
		return 0, nil
	}, nil)
	assert.NilError(t, err)
	list, err := e.List(t.Context(), catalog.ListOptions{Container: "web"}, nil)
	assert.NilError(t, err)
	var triggers []string
	for _, s := range list {
		triggers = append(triggers, string(s.Trigger))
	}
	assert.DeepEqual(t, triggers, []string{"run_end", "after_action", "run_start"})
	assert.Equal(t, len(result.Session.Snapshots), 7)

	// Now that it has ended, it counts as one: it is whole after the next run, and the one after that removes all of it.
	for _, next := range []struct {
		runID string
		left  int // of this run
	}{{"43", 3}, {"44", 0}} {
		o.RunID = next.runID
		_, err = e.Run(t.Context(), o, ending(0), nil)
		assert.NilError(t, err)
		list, err = e.List(t.Context(), catalog.ListOptions{Container: "web"}, nil)
		assert.NilError(t, err)
		list = slices.DeleteFunc(list, func(s catalog.Snapshot) bool { return s.RunID != "42" })
		assert.Equal(t, len(list), next.left, next.runID)
	}
}

func TestARunWithoutCleanupRemovesNothing(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	e := engineOf(docker)
	o := runOf(retention.IntervalRunBoundaries)
	o.Override = func(p *retention.Policy) { p.MaxSnapshots, p.AutoCleanup = 1, false }
	_, err := e.Run(t.Context(), o, ending(0), nil)
	assert.NilError(t, err)
	list, err := e.List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(list), 2)
}

// The limits hold after each action. The start of the run stays, because it is what a failure goes back to.
func TestLimitsOfARun(t *testing.T) {
	docker := enginetest.New()
	c := docker.Run(t, "web")
	began := c.Files
	e := engineOf(docker)
	o := runOf(retention.IntervalEveryAction)
	o.RestoreOnFailure = true
	o.Override = func(p *retention.Policy) { p.MaxSnapshots = 2 }
	const actions = 5
	result, err := e.Run(t.Context(), o, func(ctx context.Context, _ session.Session) (int, error) {
		for n := 1; n <= actions; n++ {
			docker.Exec("web", "touch /x")
			assert.NilError(t, dockerop.Poll(ctx, func() (bool, error) {
				s, err := e.Session(ctx, "42")
				return len(s.Snapshots) == 1+n, err
			}))
		}
		docker.Mu.Lock()
		defer docker.Mu.Unlock()
		docker.FindContainer("web").Files = "broken"
		return 1, nil
	}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(result.Session.Snapshots), 1+actions, "what was removed is listed, too")
	assert.Equal(t, result.Session.Restores[0].Status, session.OutcomeRestored)
	assert.Equal(t, docker.FindContainer("web").Files, began)
	left, err := e.List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Assert(t, len(left) < 1+actions, "%d are left", len(left))
}

func TestSnapshotsAroundAnAction(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	e := engineOf(docker)
	failure := errors.New("the action failed")
	o := runs.ActionOptions{
		Container: "web", Before: labels.TriggerBeforeAction, After: labels.TriggerAfterAction, Timeout: time.Minute, Policy: retention.Default(),
	}
	err := e.Around(t.Context(), o, func(ctx context.Context, id string) error {
		assert.Equal(t, id, docker.FindContainer("web").ID)
		list, err := e.List(ctx, catalog.ListOptions{}, nil)
		assert.NilError(t, err)
		assert.Equal(t, len(list), 1)
		assert.Equal(t, list[0].Trigger, labels.TriggerBeforeAction)
		return failure
	}, nil)
	assert.ErrorIs(t, err, failure)
	list, err := e.List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, list[0].Trigger, labels.TriggerAfterAction)
	o.Container = "gone"
	assert.Assert(t, cerrdefs.IsNotFound(e.Around(t.Context(), o, nil, nil)))
}
