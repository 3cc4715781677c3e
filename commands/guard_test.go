package commands

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// guardedEngine records what a guard has it do.
type guardedEngine struct {
	engine
	thawed  []string
	settled string
	hook    dockerop.Exec
	away    int // it is out of reach for so many tries
}

var errAway = errors.New("nobody answers")

func (e *guardedEngine) Thaw(_ context.Context, containers []string) error {
	if e.away--; e.away >= 0 {
		return errAway
	}
	e.thawed = containers
	return nil
}

func (e *guardedEngine) Settle(_ context.Context, container string, _ plan.Progress) error {
	if e.away--; e.away >= 0 {
		return errAway
	}
	e.settled = container
	return nil
}

func (e *guardedEngine) EndHook(_ context.Context, x dockerop.Exec) error {
	e.hook = x
	return nil
}

// hurriedClock is one on which whatever is waited for comes at once.
func hurriedClock() (fast clock, waited *[]time.Duration) {
	now, waited := noon, new([]time.Duration)
	return clock{now: func() time.Time { return now }, after: func(d time.Duration, f func()) func() bool {
		now, *waited = now.Add(d), append(*waited, d)
		f()
		return nil
	}}, waited
}

func TestGuardActsUnlessItIsToldThatAllIsDone(t *testing.T) {
	for _, tc := range []struct {
		name, input, replaced string
		thawed                []string
		settled               string
	}{
		{"the client died", "", "", []string{"a", "b"}, ""},
		{"the client died while it told", "don", "", []string{"a", "b"}, ""},
		{"the client is done", allDone + "\n", "", nil, ""},
		{"the client died while it replaced", "", "web", nil, "web"},
		{"the client is done with replacing", allDone + "\n", "web", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eng := &guardedEngine{}
			d := deps{engine: func(volumeOptions) (engine, error) { return eng, nil }, clock: clock{now: time.Now}}
			assert.NilError(t, runGuard(t.Context(), d, strings.NewReader(tc.input), guardOptions{replaced: tc.replaced}, []string{"a", "b"}))
			assert.DeepEqual(t, eng.thawed, tc.thawed)
			assert.Equal(t, eng.settled, tc.settled)
		})
	}
}

func TestGuardRunsThePostHook(t *testing.T) {
	const line = `{"Container":"c","Command":["unlock"],"Timeout":5000000000,"Mark":"m"}` + "\n"
	hook := dockerop.Exec{Container: "c", Command: []string{"unlock"}, Timeout: 5 * time.Second, Mark: "m"}
	for _, tc := range []struct {
		name, input string
		ran         dockerop.Exec
		fails       string
	}{
		{"the client died", line, hook, ""},
		{"the client is done", line + allDone + "\n", dockerop.Exec{}, ""},
		{"the client died before it ran any", line[:20], dockerop.Exec{}, "read the hook"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eng := &guardedEngine{}
			d := deps{engine: func(volumeOptions) (engine, error) { return eng, nil }, clock: clock{now: time.Now}}
			err := runGuard(t.Context(), d, strings.NewReader(tc.input), guardOptions{hook: true}, nil)
			assert.Equal(t, err != nil, tc.fails != "", "%v", err)
			assert.DeepEqual(t, eng.hook, tc.ran)
		})
	}
}

// Whoever loses the connection to the engine leaves the rest to its guard, which cannot
// reach the engine either at first.
func TestGuardGoesOnUntilItIsDone(t *testing.T) {
	for name, replaced := range map[string]string{"frozen": "", "replaced": "web"} {
		t.Run(name, func(t *testing.T) {
			fast, waited := hurriedClock()
			eng, unreachable := &guardedEngine{away: 6}, 2
			d := deps{clock: fast, engine: func(volumeOptions) (engine, error) {
				if unreachable--; unreachable >= 0 {
					return nil, errAway
				}
				return eng, nil
			}}
			assert.NilError(t, runGuard(t.Context(), d, strings.NewReader(""), guardOptions{replaced: replaced}, []string{"a"}))
			assert.Equal(t, eng.settled, replaced)
			assert.Equal(t, len(eng.thawed) == 1, replaced == "")
			var seconds []float64
			for _, pause := range *waited {
				seconds = append(seconds, pause.Seconds())
			}
			assert.DeepEqual(t, seconds, []float64{1, 2, 4, 8, 16, 30, 30, 30})

			fast, waited = hurriedClock()
			d.clock, eng.away = fast, 1000
			assert.ErrorIs(t, runGuard(t.Context(), d, strings.NewReader(""), guardOptions{replaced: replaced}, []string{"a"}), errAway)
			var total time.Duration
			for _, pause := range *waited {
				total += pause
			}
			assert.Assert(t, total > 14*time.Minute && total <= 15*time.Minute, "%s", total)
		})
	}
}

func TestGuardIsToldWhatToWatch(t *testing.T) {
	for _, w := range []dockerop.Watched{{Frozen: []string{"a", "b"}}, {Hook: &dockerop.Exec{}}, {Replaced: "web"}} {
		root, args := newRoot(newFixture().deps()), guardArgs(w)
		cmd, rest, err := root.Find(append([]string{guardName}, args...))
		assert.NilError(t, err)
		assert.NilError(t, cmd.ValidateArgs(w.Frozen))
		assert.NilError(t, cmd.ParseFlags(rest))
		assert.DeepEqual(t, cmd.Flags().Args(), append([]string{}, w.Frozen...))
		assert.Equal(t, cmd.Flag("replaced").Value.String(), w.Replaced)
		assert.Equal(t, cmd.Flag("hook").Changed, w.Hook != nil)
		assert.Equal(t, cmd.Flag("lock-timeout").Value.String(), time.Minute.String())
	}
}
