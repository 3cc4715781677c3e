package snapshot

import (
	"context"
	"errors"
	"slices"
	"time"
)

// cleanupTimeout bounds what is done after a failure or Ctrl-C. It leaves a
// slow engine time to answer, and a user's patience intact.
const cleanupTimeout = 20 * time.Second

// undo is what takes back a half-done operation.
type undo []func(context.Context) error

func (u *undo) add(f func(context.Context) error) { *u = append(*u, f) }

// unless takes everything back, newest first, if *err is set. It works on a
// context that survives Ctrl-C. Call it as:
//
//	defer func() { u.unless(ctx, &err) }()
func (u *undo) unless(ctx context.Context, err *error) {
	if *err == nil {
		return
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	for _, f := range slices.Backward(*u) {
		*err = errors.Join(*err, f(ctx))
	}
}

// cleanup returns a context for cleaning up, which outlives ctx but ends.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}
