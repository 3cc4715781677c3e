package protocol

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// OpDiff finds out in what two trees differ.
const OpDiff Op = "diff"

// DiffRequest asks what has to happen to the tree Old to make New of it; the changes come as events, sorted by path. At
// most one of the two is a volume.
type DiffRequest struct {
	Old Tree `json:"old"`
	New Tree `json:"new"`
	// Hidden are places that one of the trees does not show. Nothing is said of them, and of what is in them.
	Hidden []Path `json:"hidden,omitempty"`
}

// Op implements Arguments.
func (DiffRequest) Op() Op { return OpDiff }

func (r DiffRequest) validate() error {
	for _, t := range []Tree{r.Old, r.New} {
		named := 0
		for _, isNamed := range []bool{t.Archive != nil, t.Mount != nil, t.Image != ""} {
			if isNamed {
				named++
			}
		}
		if t.Mount != nil {
			if err := t.Mount.Excluded.Check(); err != nil {
				return err
			}
		}
		if named > 1 {
			return fmt.Errorf("a tree of %d kinds: %w", named, errdefs.ErrInvalidArgument)
		}
	}
	if r.Old.Mount != nil && r.New.Mount != nil {
		return fmt.Errorf("two volumes to compare: %w", errdefs.ErrInvalidArgument)
	}
	return checkItems(len(r.Hidden))
}

// Tree names a tree of files. Without any of them it is empty.
type Tree struct {
	Archive *ArchiveRef `json:"archive,omitempty"`
	Mount   *Mount      `json:"mount,omitempty"` // a volume as it is now
	// Afresh has every file of the volume read, also if the store knows what it holds.
	Afresh bool   `json:"afresh,omitempty"`
	Image  string `json:"image,omitempty"` // the root filesystem that the worker was told of under this key
}

// FileChange is what happened to one entry.
type FileChange struct {
	Path      Path         `json:"path"`
	Type      changes.Type `json:"change_type"`
	SizeDelta int64        `json:"size_delta"`
}

// Diff hands each change to visit.
func (c *Client) Diff(ctx context.Context, r DiffRequest, visit func(FileChange), emit func(Event)) error {
	_, err := call[None](ctx, c, r, func(e Event) {
		for _, change := range e.Changes {
			visit(change)
		}
		if e.Type != TypeChanges && emit != nil {
			emit(e)
		}
	})
	return err
}
