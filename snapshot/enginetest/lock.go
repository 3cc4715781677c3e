package enginetest

import (
	"context"
	"errors"
)

// fakeLock is the lock of several containers: the worker that has the journal, and others.
type fakeLock struct {
	*fakeWorker
	others []*fakeWorker
}

// Held fails if one of the workers has ended.
func (l *fakeLock) Held(ctx context.Context) error {
	for _, other := range l.others {
		if err := other.Held(ctx); err != nil {
			return err
		}
	}
	return l.fakeWorker.Held(ctx)
}

// Release settles the journal, and frees the others.
func (l *fakeLock) Release(ctx context.Context) error {
	if err := l.fakeWorker.Release(ctx); err != nil {
		return err
	}
	_ = l.closeOthers()
	return nil
}

// Abandon leaves the worker that has the journal.
func (l *fakeLock) Abandon() error {
	_ = l.closeOthers()
	return l.fakeWorker.Abandon()
}

// Close removes all workers.
func (l *fakeLock) Close() error {
	err := l.closeOthers()
	if l.fakeWorker == nil { // that one was not taken
		return err
	}
	return errors.Join(err, l.fakeWorker.Close())
}

func (l *fakeLock) closeOthers() error {
	var failed error
	for _, other := range l.others {
		failed = errors.Join(failed, other.Close())
	}
	return failed
}
