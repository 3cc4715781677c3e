package archives

import (
	"context"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Entries hands every entry of an archived volume to visit, sorted by path.
func (a *Archives) Entries(ctx context.Context, s catalog.Snapshot, m labels.Mount, visit func(volumebackup.Entry)) error {
	if m.Archive == nil {
		return fmt.Errorf("the content of volume %s is not in snapshot %s", m.Name, s.ID)
	}
	volumes, err := a.At(ctx, s)
	if err != nil {
		return err
	}
	return volumes.Entries(ctx, string(s.ID), m.Archive.Index, m.Archive.Root, visit)
}
