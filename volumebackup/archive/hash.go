//go:build linux

package archive

import (
	"context"
	"crypto/sha256"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// hasher finds out what files of a volume hold.
type hasher struct {
	counter      *Counter
	fingerprints *manifest.FingerprintKey // nil if there is no head, or no key
}

// hashPieces finds the sums of the pieces of a file. It recognizes those that the head knows by their fingerprints.
func (h *hasher) hashPieces(ctx context.Context, fd int, e *manifest.Entry, known []manifest.Piece) error {
	buffer := make([]byte, min(e.Size, pieceLength(e.Size)))
	for i := range e.Pieces {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		piece := &e.Pieces[i]
		n, err := readFull(fd, buffer[:piece.Length], piece.Offset)
		if err != nil {
			return err
		}
		h.counter.Bytes.Add(int64(n))
		piece.Length = uint32(n)
		if !h.isKnown(piece, buffer[:n], known, i) {
			piece.Sum = sha256.Sum256(buffer[:n])
		}
	}
	return nil
}

// isKnown takes the sum of a piece from the head if it has a piece with the same fingerprint at the same place.
func (h *hasher) isKnown(piece *manifest.Piece, content []byte, known []manifest.Piece, n int) bool {
	if n >= len(known) || known[n].Fingerprint == 0 || h.fingerprints == nil {
		return false
	}
	old := &known[n]
	if old.Offset != piece.Offset || old.Length != piece.Length || old.Fingerprint != h.fingerprints.Fingerprint(content) {
		return false
	}
	piece.Sum = old.Sum
	return true
}
