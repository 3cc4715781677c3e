package capture

import (
	"context"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// retire removes the snapshot whose name the new one took over. The new one is complete, so a
// failure is only a warning.
func (cr *Capturer) retire(ctx context.Context, old *catalog.Snapshot, engine dockerop.Info, p plan.Progress) {
	if old == nil {
		return
	}
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	err := cr.docker.RemoveImage(ctx, old.Ref())
	if err == nil {
		failed, _ := cr.archives.Remove(ctx, []catalog.Snapshot{*old}, &engine, p)
		err = failed[old.ID]
	}
	if err != nil {
		p.Warn("tag", fmt.Sprintf("the replaced snapshot %s could not be removed: %v", old.Title(), err))
	}
}
