package snapshot

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// createState takes a state.
func (e *Engine) createState(ctx context.Context, o capture.Options, p plan.Progress) (capture.Created, error) {
	when, err := e.capture.NewRequest(1)
	if err != nil {
		return capture.Created{}, err
	}
	return e.capture.TakeState(ctx, o, when, p)
}

// KeepLast removes the oldest automatic states of a line until there are most; 0 means no limit.
func (e *Engine) KeepLast(ctx context.Context, line string, most int, p plan.Progress) error {
	return e.removal.KeepLast(ctx, line, most, p)
}
