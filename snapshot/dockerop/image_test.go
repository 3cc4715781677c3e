package dockerop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/image"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// slowEngine takes its time for images, and does what it is asked for even if its client has hung up.
type slowEngine struct {
	dockerop.Docker

	interrupt context.CancelFunc // Ctrl-C, while it is at work
	takes     time.Duration
}

func (e slowEngine) ImageRemove(ctx context.Context, _ string, _ image.RemoveOptions) ([]image.DeleteResponse, error) {
	return nil, e.work(ctx)
}

func (e slowEngine) ImageTag(ctx context.Context, _, _ string) error { return e.work(ctx) }

func (e slowEngine) work(ctx context.Context) error {
	e.interrupt()
	select {
	case <-time.After(e.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// What the engine was asked to do with an image is answered before anything is rolled back, or else it might be done after that.
// But nobody waits for long, and nothing more is asked for after Ctrl-C.
func TestImagesAreChangedBeforeAnInterruption(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, e *dockerop.Engine) error{
		"remove": func(ctx context.Context, e *dockerop.Engine) error { return e.RemoveImage(ctx, "web:one") },
		"tag":    func(ctx context.Context, e *dockerop.Engine) error { return e.Tag(ctx, "sha256:1", "web:one") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, tc := range []struct {
				takes time.Duration
				err   error
			}{
				{takes: 15 * time.Second},
				{takes: time.Hour, err: context.Canceled},
			} {
				synctest.Test(t, func(t *testing.T) {
					ctx, interrupt := context.WithCancel(t.Context())
					e := dockerop.New(slowEngine{interrupt: interrupt, takes: tc.takes}, nil)
					began := time.Now()
					assert.ErrorIs(t, call(ctx, e), tc.err)
					assert.Assert(t, time.Since(began) < time.Minute)
					asked := time.Now()
					assert.ErrorIs(t, call(ctx, e), context.Canceled)
					assert.Equal(t, time.Since(asked), time.Duration(0))
				})
			}
		})
	}
}
