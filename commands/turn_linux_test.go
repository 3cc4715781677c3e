package commands

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func TestATurnIsOneProcessAtATime(t *testing.T) {
	name := turnName([]string{t.TempDir()}, turnWork)
	release, isFree := takeTurn(name)
	assert.Assert(t, isFree)
	_, isFree = takeTurn(name)
	assert.Assert(t, !isFree)
	release()
	release, isFree = takeTurn(name)
	assert.Assert(t, isFree)
	release()
}

// A tidy that has not begun does the work for all that come meanwhile; one at work is waited for.
func TestTidiesTakeTurns(t *testing.T) {
	f := newFixture()
	fast, waited := hurriedClock()
	d := f.deps()
	d.clock, d.global = fast, []string{"--host", t.TempDir()}

	release, isFree := takeTurn(turnName(d.global, turnAll))
	assert.Assert(t, isFree)
	assert.NilError(t, runTidy(t.Context(), d, tidyOptions{}))
	assert.Equal(t, len(f.engine.prunes), 0)
	release()

	release, isFree = takeTurn(turnName(d.global, turnWork))
	assert.Assert(t, isFree)
	d.clock.after = func(pause time.Duration, then func()) func() bool {
		if pause == tidyPause {
			release()
		}
		return fast.after(pause, then)
	}
	assert.NilError(t, runTidy(t.Context(), d, tidyOptions{}))
	assert.Equal(t, len(f.engine.prunes), 1)
	assert.DeepEqual(t, *waited, []time.Duration{tidyDelay, tidyPause})
}
