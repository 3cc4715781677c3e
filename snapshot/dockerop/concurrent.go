package dockerop

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
)

// MaxConcurrentCalls is how many calls about things of one kind are made at once.
const MaxConcurrentCalls = 8

// Absent calls ask with each name, several at once, and returns the names that were not found.
func Absent(ctx context.Context, names []string, ask func(context.Context, string) error) (map[string]bool, error) {
	found := make([]error, len(names))
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(MaxConcurrentCalls)
	for i, name := range names {
		calls.Go(func() error {
			found[i] = ask(ctx, name)
			if cerrdefs.IsNotFound(found[i]) {
				return nil
			}
			return found[i]
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	for i, name := range names {
		if found[i] != nil {
			gone[name] = true
		}
	}
	return gone, nil
}
