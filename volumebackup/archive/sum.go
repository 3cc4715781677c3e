//go:build linux

package archive

import (
	"context"
	"crypto/sha256"
	"hash"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// SumOf is the SHA-256 of a whole file. That of a file in one piece is in its entry; other files are read.
func SumOf(ctx context.Context, s *store.Store, e *manifest.Entry, b *store.Buffer) (sum manifest.Sum, err error) {
	if len(e.Pieces) == 1 && int64(e.Pieces[0].Length) == e.Size {
		return e.Pieces[0].Sum, nil
	}
	whole := sha256.New()
	at := int64(0)
	for i := range e.Pieces {
		p := &e.Pieces[i]
		if err := addZeros(ctx, whole, p.Offset-at); err != nil {
			return sum, err
		}
		content, err := s.ReadPiece(p, e.Path, b)
		if err != nil {
			return sum, err
		}
		_, _ = whole.Write(content) // a hash takes everything
		at = p.End()
	}
	err = addZeros(ctx, whole, e.Size-at)
	whole.Sum(sum[:0])
	return sum, err
}

// addZeros adds a hole to a sum.
func addZeros(ctx context.Context, to hash.Hash, length int64) error {
	zero := make([]byte, min(length, 1<<20))
	for ; length > 0; length -= int64(len(zero)) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		zero = zero[:min(length, int64(len(zero)))]
		_, _ = to.Write(zero) // a hash takes everything
	}
	return context.Cause(ctx)
}
