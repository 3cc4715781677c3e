package commands

import (
	"context"
	"errors"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/cli/cli"
	"github.com/docker/docker/client"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runs"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/untar"
)

// errorCode is what programs know an error by. docs/json.md says what each code means.
type errorCode string

// The codes. None goes away or changes.
const (
	codeNotFound    errorCode = "not_found"
	codeAmbiguous   errorCode = "ambiguous"
	codeNameTaken   errorCode = "name_taken"
	codeInUse       errorCode = "in_use"
	codePinned      errorCode = "pinned"
	codeLocked      errorCode = "locked"
	codeProblems    errorCode = "problems"
	codeIncomplete  errorCode = "incomplete"
	codeDamaged     errorCode = "damaged"
	codeNoSpace     errorCode = "no_space"
	codeTooLarge    errorCode = "too_large"
	codeUnreachable errorCode = "unreachable"
	codeUsage       errorCode = "usage"
	codeInterrupted errorCode = "interrupted"
	codeInternal    errorCode = "internal"
)

// errorCodes is the only place that decides which errors have which code. An error wraps others, and may
// be several: the first row that knows one of them decides. So what is left to be put right comes first,
// then what types say, and the classes of the engine's and the worker's own errors last.
var errorCodes = []struct {
	code errorCode
	is   []func(error) bool
}{
	{codeInterrupted, []func(error) bool{isSignal}},
	{codeIncomplete, []func(error) bool{typed[*replace.UndoError], typed[*replace.NotStartedError], typed[*capture.LeftFrozenError], sentinel(errIncomplete)}},
	{codeProblems, []func(error) bool{typed[*plan.ProblemsError]}},
	{codeUsage, []func(error) bool{isUsage, typed[wrongArgument], typed[*catalog.StateError], typed[*catalog.ContainerError], typed[*diff.OtherStoreError], typed[*replace.UnknownPartError], typed[*replace.NotCopyError], typed[*untar.DestinationError]}},
	{codeAmbiguous, []func(error) bool{typed[*catalog.AmbiguousError]}},
	{codeNameTaken, []func(error) bool{typed[*catalog.NameTakenError], typed[*catalog.LineError]}},
	{codePinned, []func(error) bool{typed[*catalog.PinnedError]}},
	{codeInUse, []func(error) bool{typed[*replace.InUseError], typed[*copies.InUseError], typed[*dockerop.SelfError], typed[*dockerop.PausedError], typed[*runs.OtherContainerError]}},
	{codeLocked, []func(error) bool{
		typed[*volumebackup.LockedError], typed[*volumebackup.PausedError], typed[*replace.PendingError], typed[*removal.InterruptedError],
		typed[*replace.UnknownJournalError], sentinel(pending.ErrMoved), sentinel(volumebackup.ErrLost),
	}},
	{codeDamaged, []func(error) bool{typed[*volumebackup.MissingError], typed[*volumebackup.NoStoreError], typed[*labels.FieldError], typed[*catalog.UnreadableError], cerrdefs.IsDataLoss}},
	{codeNoSpace, []func(error) bool{typed[*volumebackup.FullError], typed[*dockerop.FullError], cerrdefs.IsResourceExhausted}},
	{codeTooLarge, []func(error) bool{typed[*volumebackup.LimitError]}},
	{codeNotFound, []func(error) bool{typed[*catalog.NotFoundError], typed[*catalog.UntaggedError], typed[*catalog.RunNotFoundError], typed[*archives.NoAttachmentError], typed[*archives.NoBaseError], typed[*extract.NoPathError], typed[*extract.NotHeldError], typed[*dockerop.NoContainerError], typed[*replace.NoUndoError], typed[*diff.GoneError], typed[*diff.UnknownVolumeError], typed[*diff.UnknownPathError], typed[*replace.UnknownPathError], typed[missing]}},
	{codeUnreachable, []func(error) bool{typed[unreachable], client.IsErrConnectionFailed, sentinel(context.DeadlineExceeded)}},
	{codeInterrupted, []func(error) bool{sentinel(context.Canceled), sentinel(errDeclined)}},
	{codeNotFound, []func(error) bool{cerrdefs.IsNotFound}},
	{codeNameTaken, []func(error) bool{cerrdefs.IsAlreadyExists}},
	{codeInUse, []func(error) bool{cerrdefs.IsConflict}},
	{codeUsage, []func(error) bool{cerrdefs.IsInvalidArgument}},
}

// codeOf is the code of an error.
func codeOf(err error) errorCode {
	for _, row := range errorCodes {
		for _, is := range row.is {
			if is(err) {
				return row.code
			}
		}
	}
	return codeInternal
}

// typed tells whether an error is, or wraps, one of a type.
func typed[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// sentinel makes the test for one error.
func sentinel(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// isUsage tells whether an error ends the command with the status of wrong options.
func isUsage(err error) bool {
	status, ok := errors.AsType[cli.StatusError](err)
	return ok && status.StatusCode == statusUsage
}

// isSignal tells whether a signal ended the command.
func isSignal(err error) bool {
	status, ok := errors.AsType[cli.StatusError](err)
	return ok && status.StatusCode > statusSignal
}

// wrongArgument is an argument that cannot mean anything, or a question that nobody is there to answer. For
// people that is an error like any other, with status 1.
type wrongArgument struct{ error }

func (e wrongArgument) Unwrap() error { return e.error }

// missing is that something of a snapshot was named which is not there.
type missing struct{ error }

func (e missing) Unwrap() error { return e.error }

// unreachable is why there is no way to an engine, before anything was asked of it.
type unreachable struct{ error }

func (e unreachable) Unwrap() error { return e.error }
