package volumebackup

import (
	"context"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// OpenFreezer starts a worker that can freeze and thaw the processes of containers past the engine.
func (s *Service) OpenFreezer(ctx context.Context) (dockerop.Freezer, error) {
	session, err := s.start(ctx, job{purpose: "thaw a container that the engine cannot thaw", rights: toFreeze}, nil)
	if err != nil {
		return nil, err
	}
	return freezer{session}, nil
}

type freezer struct{ *session }

// Set implements [dockerop.Freezer].
func (f freezer) Set(ctx context.Context, container string, frozen bool) error {
	if err := f.client.Freeze(ctx, container, frozen); err != nil {
		return fmt.Errorf("freeze or thaw the processes of container %s: %w", dockerop.Shorten(container), f.explain(err))
	}
	return nil
}
