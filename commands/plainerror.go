package commands

import (
	"context"
	"errors"
	"regexp"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

// interruption is the text of an error that a command ended with after a signal. What was
// only cut short by it needs no words: an operation puts back what it changed, and its
// error says what that was, or what it could not put back.
func interruption(err error) string {
	if rest := withoutCancelled(err); rest != nil {
		return "interrupted: " + explain(rest)
	}
	return "interrupted: nothing was changed"
}

// withoutCancelled is an error without those in it that only say that they were cancelled.
func withoutCancelled(err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		switch inner := inner.(type) { //nolint:errorlint // one link of the chain is looked at after the other
		case *snapshot.UndoError, *snapshot.NotStartedError:
			return err
		case interface{ Unwrap() []error }:
			var rest []error
			for _, one := range inner.Unwrap() {
				rest = append(rest, withoutCancelled(one))
			}
			return errors.Join(rest...)
		}
	}
	return nil
}

// requests are what Go's HTTP client puts before an error.
var requests = regexp.MustCompile(`(?:error during connect: )?\b[A-Z][a-z]+ "(?:https?|unix|npipe|ssh|tcp)://[^"]*": `)

// failedRequests are what it says of a connection that broke, or was given up, in words
// that mean something to people.
var failedRequests = []struct {
	is   *regexp.Regexp
	text string
}{
	{regexp.MustCompile(requests.String() + `context deadline exceeded(?: \([^)]*\))?`), "the engine did not answer in time"},
	{regexp.MustCompile(requests.String() + `context canceled`), "the request to the engine was cancelled"},
	{regexp.MustCompile(requests.String() + `(?:unexpected )?EOF`), "the connection to the engine broke"},
	{requests, "the connection to the engine broke: "},
}

// plain says in people's words what Go says of a request that failed.
func plain(text string) string {
	for _, failed := range failedRequests {
		text = failed.is.ReplaceAllLiteralString(text, failed.text)
	}
	return text
}
