package capture

import (
	"context"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// MadeError says that the request was made before, and which snapshot came of it. It is no failure.
type MadeError struct{ Snapshot catalog.Snapshot }

func (e *MadeError) Error() string {
	return fmt.Sprintf("snapshot %s was taken for this key already", e.Snapshot.ID)
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

func (a *taking) checkOnce(ctx context.Context) error {
	record := a.parts[0].record
	return a.engine.checkOnce(ctx, record.Container.Name, record.IdempotencyKey)
}
