package commands

import (
	"context"
	"errors"
	"regexp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// describe is the text of the error that ends a command, or of one item of it.
func describe(err error) string {
	if errors.Is(err, context.Canceled) {
		return interruption(err)
	}
	return explain(err)
}

// interruption is the text of the error of a command that a signal ended. It leaves out
// the errors that only say that something was cancelled: an operation rolls back what it
// changed, and an error of its own says what it has put back, or could not.
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
		switch inner := inner.(type) { //nolint:errorlint // this walks the chain link by link
		case *replace.UndoError, *replace.NotStartedError:
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

// requests matches what Go's HTTP client puts before an error.
var requests = regexp.MustCompile(`(?:error during connect: )?\b[A-Z][a-z]+ "(?:https?|unix|npipe|ssh|tcp)://[^"]*": `)

// failedRequests matches what the client says of a connection that broke, or was given
// up. text says the same in words that mean something to people.
var failedRequests = []struct {
	is   *regexp.Regexp
	text string
}{
	{regexp.MustCompile(requests.String() + `context deadline exceeded(?: \([^)]*\))?`), "the engine did not answer in time"},
	{regexp.MustCompile(requests.String() + `context canceled`), "the request to the engine was cancelled"},
	{regexp.MustCompile(requests.String() + `(?:unexpected )?EOF`), "the connection to the engine broke"},
	{requests, "the connection to the engine broke: "},
}

// plain replaces what Go says of a failed request by words for people.
func plain(text string) string {
	for _, failed := range failedRequests {
		text = failed.is.ReplaceAllLiteralString(text, failed.text)
	}
	return text
}
