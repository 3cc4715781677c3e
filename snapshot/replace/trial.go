package replace

import (
	"context"
	"fmt"

	"github.com/docker/docker/client"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// RefusedError means that the engine refuses to create the new container. The old one was not touched.
type RefusedError struct {
	Container string
	Err       error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("cannot restore %s: the engine refuses its configuration: %v. Nothing was stopped", e.Container, e.Err)
}

// Unwrap gives the error the class of the engine's.
func (e *RefusedError) Unwrap() error { return e.Err }

// try creates each of the new containers under another name, and removes it, while the old ones run. So the engine refuses
// a configuration before anything has stopped.
func (t *transaction) try(ctx context.Context) error {
	if t.keeps {
		return nil
	}
	t.p.Status("check", "checking that the engine accepts the configuration")
	for _, m := range t.making() {
		spec := m.Spec.Trial(t.gone())
		if m.isPlanned() { // its snapshot is not there yet
			spec.Config.Image = m.promoted.container.Image
		}
		err := t.engine.build.Try(ctx, build.Container{Spec: spec, Name: t.journal.TrialName()})
		if cause := context.Cause(ctx); err != nil && cause == nil && !client.IsErrConnectionFailed(err) {
			return &RefusedError{Container: m.Name, Err: err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropTrial removes the container of a trial, should it be left.
func (t *transaction) dropTrial(ctx context.Context) error {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	return t.engine.docker.Discard(ctx, t.journal.TrialName())
}
