package commands

import (
	"context"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gotest.tools/v3/assert"
)

// A terminal sends Ctrl-C to the command and to us. The command may have ended before we handle ours.
func TestTheCtrlCThatEndedTheCommandEndsNothingElse(t *testing.T) {
	for _, tc := range []struct {
		name       string
		isTerminal bool
		sent       os.Signal
		after      time.Duration // the command's end
		ends       bool
	}{
		{"Ctrl-C that the command had, too", true, os.Interrupt, ctrlCGrace / 2, false},
		{"Ctrl-\\ that the command had, too", true, syscall.SIGQUIT, ctrlCGrace / 2, false},
		{"a later Ctrl-C", true, os.Interrupt, 2 * ctrlCGrace, true},
		{"kill, which reaches us alone", true, syscall.SIGTERM, 0, true},
		{"SIGINT without a terminal", false, os.Interrupt, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := &child{now: time.Now, isTerminal: tc.isTerminal, cancel: cancel, ended: time.Now()}
				time.Sleep(tc.after)
				c.pass(tc.sent)
				assert.Equal(t, ctx.Err() != nil, tc.ends)
			})
		})
	}
}

func TestCtrlCBeforeTheCommandStartsEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &child{now: time.Now, isTerminal: true, cancel: cancel}
	c.pass(os.Interrupt)
	assert.ErrorIs(t, ctx.Err(), context.Canceled)
	assert.Equal(t, c.interrupted(), statusSignal+int(syscall.SIGINT))
}
