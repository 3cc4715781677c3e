package archives

import (
	"context"
	"io"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// Parts reads parts of the archived volumes of a snapshot. Close ends it.
type Parts struct {
	snapshot catalog.Snapshot
	reader   Extractor
}

// OpenParts starts a worker that reads the volumes of a snapshot.
func (a *Archives) OpenParts(ctx context.Context, s catalog.Snapshot, p plan.Progress) (*Parts, error) {
	volumes, err := a.At(ctx, s)
	if err != nil {
		return nil, err
	}
	reader, err := volumes.OpenExtractor(ctx, "read files of "+string(s.ID), Progress(p))
	if err != nil {
		return nil, err
	}
	return &Parts{snapshot: s, reader: reader}, nil
}

// Part is a part of an archived volume.
type Part struct {
	Path      string // relative to the root of the volume, which is empty
	Directory bool   // it has to be a directory
	Follow    bool   // a symlink at the end of Path is returned like one on the way to it
	Look      bool   // it is only asked whether it is there
	Name      string // what it is called where it comes
}

// Extract writes a part of a volume to out as a tar. It fails with [volumebackup.ErrNoEntry] if there is nothing. If the
// path leads through a symlink, Extract returns that, and has written nothing.
func (r *Parts) Extract(ctx context.Context, m labels.Mount, part Part, out io.Writer) (*volumebackup.Link, error) {
	return r.reader.Extract(ctx, volumebackup.ExtractOptions{
		Snapshot: string(r.snapshot.ID), Archive: m.Archive.Index, Root: m.Archive.Root,
		Path: protocol.Path(part.Path), Name: protocol.Path(part.Name), Directory: part.Directory, Follow: part.Follow, Look: part.Look,
	}, m.Key(), out)
}

// Close ends the worker.
func (r *Parts) Close() error { return r.reader.Close() }
