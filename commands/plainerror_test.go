package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

func TestAnInterruptionSaysWhatWasPutBack(t *testing.T) {
	request := &url.Error{Op: "Post", URL: "http://%2Fvar%2Frun%2Fdocker.sock/v1.51/containers/web/start", Err: context.Canceled}
	cancelled := fmt.Errorf("start worker: start: %w", request)
	undone := errors.New("everything was put back: container web (0123456789ab) is running, with the data that it had")
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"before anything": {cancelled, "interrupted: nothing was changed"},
		"of two, both cut short": {
			fmt.Errorf("safety snapshot: %w", errors.Join(cancelled, context.Canceled)), "interrupted: nothing was changed",
		},
		"rolled back":     {errors.Join(cancelled, undone), "interrupted: " + undone.Error()},
		"not rolled back": {errors.Join(cancelled, fmt.Errorf("remove volume data-1: %w", io.ErrUnexpectedEOF)), "interrupted: remove volume data-1: unexpected EOF"},
		"stuck": {
			errors.Join(cancelled, &replace.UndoError{Container: "web", State: "Nothing was deleted.", Err: cancelled}),
			"interrupted: container web could not be put back: start worker: start: the request to the engine was cancelled\nNothing was deleted.",
		},
		"another error": {errors.New("it broke"), "interrupted: it broke"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, interruption(tc.err), tc.want) })
	}
}

func TestFailedRequestsAreToldInWords(t *testing.T) {
	for raw, want := range map[string]string{
		`stop container web: Post "http://%2Frun%2Fdocker.sock/v1.51/containers/web/stop": context deadline exceeded`:                                 "stop container web: the engine did not answer in time",
		`Get "http://10.0.0.1:2375/v1.51/info": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`:                           "the engine did not answer in time",
		`commit container web: error during connect: Post "http://%2Frun%2Fdocker.sock/v1.51/commit?x=1": EOF`:                                        "commit container web: the connection to the engine broke",
		`error during connect: Head "https://engine:2376/_ping": read tcp 10.0.0.2:1->10.0.0.1:2376: read: connection reset by peer`:                  "the connection to the engine broke: read tcp 10.0.0.2:1->10.0.0.1:2376: read: connection reset by peer",
		`both: Delete "http://%2Frun%2Fdocker.sock/v1.51/containers/a": EOF; Delete "http://%2Frun%2Fdocker.sock/v1.51/containers/b": unexpected EOF`: "both: the connection to the engine broke; the connection to the engine broke",
		`volume "http://x" is in use`: `volume "http://x" is in use`,
	} {
		assert.Equal(t, plain(raw), want)
		assert.Equal(t, explain(errors.New(raw)), want)
	}
}
