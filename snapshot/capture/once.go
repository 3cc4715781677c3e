package capture

import (
	"context"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// MadeError says that the request was made before, and which snapshot came of it. It is no failure.
type MadeError struct{ Snapshot catalog.Snapshot }

func (e *MadeError) Error() string {
	return fmt.Sprintf("snapshot %s was taken for this key already", e.Snapshot.Title())
}

// checkOnce fails with [MadeError] if there is a snapshot of the idempotency key already. Under the
// container's lock, which a request with a key holds until its snapshot has its tags, nobody else can
// make one.
func (cr *Capturer) checkOnce(ctx context.Context, container, key string) error {
	if key == "" {
		return nil
	}
	made, err := cr.catalog.FindByKey(ctx, container, key)
	if err != nil {
		return err
	}
	if made != nil {
		return &MadeError{Snapshot: *made}
	}
	return nil
}

// exclusive tells whether the lock is needed from the decision that a snapshot is wanted until it has its
// tags: who waits for the lock decides by it.
func (o Options) exclusive() bool {
	return o.IdempotencyKey != "" || o.Usage != nil && !o.Usage.Force
}

func (a *taking) checkOnce(ctx context.Context) error {
	record := a.parts[0].record
	return a.engine.checkOnce(ctx, record.Container.Name, record.IdempotencyKey)
}

func (a *taking) exclusive() bool { return a.parts[0].from.options.exclusive() }

// checkWanted fails with [MadeError] or [NotDueError] if another request has made this one, of a container
// or line, needless. Only under the lock can it miss none.
func (cr *Capturer) checkWanted(ctx context.Context, name string, o Options) error {
	if err := cr.checkOnce(ctx, name, o.IdempotencyKey); err != nil {
		return err
	}
	return cr.checkDue(ctx, name, o)
}

func (a *taking) checkWanted(ctx context.Context) error {
	one := a.parts[0]
	return a.engine.checkWanted(ctx, one.record.Container.Name, one.from.options)
}
