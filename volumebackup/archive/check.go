//go:build linux

package archive

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// eachStep visits the entries that the plan has steps for, in order.
func (r *restore) eachStep(visit func(*manifest.Entry, *step) error) error {
	m, err := r.manifest()
	if err != nil {
		return err
	}
	defer m.Close()
	steps := r.plan.steps
	for ordinal := int64(0); len(steps) > 0; ordinal++ {
		e, err := m.Next()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF // the plan was made from the same manifest
		}
		if err != nil {
			return err
		}
		if ordinal != steps[0].ordinal {
			continue
		}
		if err := visit(e, &steps[0]); err != nil {
			return err
		}
		steps = steps[1:]
	}
	return nil
}

// needed lists the pieces that a step writes.
func (s *step) needed(e *manifest.Entry) []manifest.Piece {
	switch s.action {
	case actCreate:
		return e.Pieces
	case actUpdate:
		return piecesAt(e, s.pieces)
	default:
		return nil
	}
}

// checkBatch is how many pieces are checked in one go.
const checkBatch = 64

// checkPieces reads and checks every piece that the plan needs, before anything in the volume changes.
func (r *restore) checkPieces(ctx context.Context) error {
	return checkAll(ctx, r.checkSome, func(need needPieces) error {
		return r.eachStep(func(e *manifest.Entry, s *step) error { return need(e, s.needed(e)) })
	})
}

func (r *restore) checkSome(e *manifest.Entry, pieces []manifest.Piece, b *store.Buffer) error {
	for i := range pieces {
		if _, err := r.store.ReadPiece(&pieces[i], e.Path, b); err != nil {
			return err
		}
	}
	return nil
}

// needPieces asks for some pieces of a file to be checked.
type needPieces func(e *manifest.Entry, pieces []manifest.Piece) error

// checkAll checks, in several goroutines, the pieces that find asks for.
func checkAll(ctx context.Context, check func(*manifest.Entry, []manifest.Piece, *store.Buffer) error, find func(needPieces) error) error {
	group, ctx := errgroup.WithContext(ctx)
	work := make(chan func(*store.Buffer) error, batchesAhead)
	for range runtime.GOMAXPROCS(0) + 1 {
		group.Go(func() error {
			var buffer store.Buffer
			for check := range work {
				if err := check(&buffer); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(work)
		return find(func(e *manifest.Entry, pieces []manifest.Piece) error {
			for some := range slices.Chunk(pieces, checkBatch) {
				select {
				case work <- func(b *store.Buffer) error { return check(e, some, b) }:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})
	})
	return group.Wait()
}
