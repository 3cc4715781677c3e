package snapshot

import (
	"context"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
)

// usersOf lists the containers that run, or stand still, and see the content of one
// of the volumes, but for our own workers.
func (e *Engine) usersOf(ctx context.Context, s storage.Map, volumes []string) ([]container.Summary, error) {
	users, err := s.UsersAndWorkers(ctx, e.docker, volumes)
	if err != nil {
		return nil, err
	}
	return e.pending.WithoutWorkers(ctx, users)
}
