//go:build linux

package archive

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

const (
	// wholeFile is the size up to which a file is one piece.
	wholeFile = 1 << 20

	// blockLength is the length of the pieces of larger files.
	blockLength = 256 << 10
)

// errTooLarge says that a file has more content than an entry can describe.
var errTooLarge = fmt.Errorf("it has more than %d pieces: %w", manifest.MaxPieces, manifest.ErrUnfit)

// pieceLength is how long the pieces of a file are. Those of a huge one are longer, so that
// its record stays within the format's limits.
func pieceLength(size int64) int64 {
	if size <= wholeFile {
		return wholeFile
	}
	length := int64(blockLength)
	for size/length >= manifest.MaxPieces && length < manifest.MaxPiece {
		length *= 2
	}
	return length
}

// layout finds the holes of a file that has e.Size bytes, and cuts the rest of it into pieces.
func layout(fd int, e *manifest.Entry, sparse bool) error {
	e.Holes, e.Pieces = nil, nil
	if sparse {
		holes, err := findHoles(fd, e.Size)
		if err != nil {
			return err
		}
		e.Holes = holes
	}
	length := pieceLength(e.Size)
	if len(e.Holes) == 0 {
		e.Pieces = make([]manifest.Piece, 0, min((e.Size+length-1)/length, manifest.MaxPieces))
	}
	holes := e.Holes
	for at := int64(0); at < e.Size; at += length {
		end := min(at+length, e.Size)
		for len(holes) > 0 && holes[0].Offset+holes[0].Length <= at {
			holes = holes[1:]
		}
		if len(holes) > 0 && holes[0].Offset <= at && holes[0].Offset+holes[0].Length >= end {
			// Go on with the last piece that begins in this hole.
			at = max(at, (holes[0].Offset+holes[0].Length)/length*length-length)
			continue
		}
		if len(e.Pieces) == manifest.MaxPieces {
			return errTooLarge
		}
		e.Pieces = append(e.Pieces, manifest.Piece{Offset: at, Length: uint32(end - at)})
	}
	return nil
}

// isSparse says that a file may have holes. For a large one it costs little to look; space
// that is allocated beyond the end could hide them.
func isSparse(st *unix.Stat_t) bool { return st.Size > wholeFile || st.Blocks*512 < st.Size }

// addHole adds a hole, which may go on where the last one ends: between two looks data
// became a hole. If they are too many the short ones are not kept; they are read as zeros.
func addHole(holes []manifest.Range, offset, length int64) []manifest.Range {
	if n := len(holes); n > 0 && holes[n-1].Offset+holes[n-1].Length == offset {
		holes[n-1].Length += length
		return holes
	}
	holes = append(holes, manifest.Range{Offset: offset, Length: length})
	for least := int64(tarBlock); len(holes) > manifest.MaxHoles; least *= 2 {
		holes = slices.DeleteFunc(holes, func(h manifest.Range) bool { return h.Length < least })
	}
	return holes
}

// findHoles lists the holes among the first size bytes.
func findHoles(fd int, size int64) ([]manifest.Range, error) {
	var holes []manifest.Range
	for at := int64(0); at < size; {
		data, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			data = size
		} else if errors.Is(err, unix.EINVAL) {
			return nil, nil // the filesystem does not tell
		} else if err != nil {
			return nil, err
		}
		data = min(data, size)
		if data > at {
			holes = addHole(holes, at, data-at)
		}
		if data >= size {
			break
		}
		at, err = unix.Seek(fd, data, unix.SEEK_HOLE)
		if errors.Is(err, unix.ENXIO) { // cut off meanwhile
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return holes, nil
}

// cutOff shortens an entry to what could be read of it.
func cutOff(e *manifest.Entry, size int64) {
	e.Size = size
	for len(e.Pieces) > 0 && (e.Pieces[len(e.Pieces)-1].Offset >= size || e.Pieces[len(e.Pieces)-1].Length == 0) {
		e.Pieces = e.Pieces[:len(e.Pieces)-1]
	}
	for len(e.Holes) > 0 && e.Holes[len(e.Holes)-1].Offset >= size {
		e.Holes = e.Holes[:len(e.Holes)-1]
	}
	if n := len(e.Holes); n > 0 {
		e.Holes[n-1].Length = min(e.Holes[n-1].Length, size-e.Holes[n-1].Offset)
	}
}

// readFull reads until the buffer is full or the file ends.
func readFull(fd int, b []byte, offset int64) (int, error) {
	read := 0
	for read < len(b) {
		n, err := unix.Pread(fd, b[read:], offset+int64(read))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return read, err
		}
		if n == 0 {
			break
		}
		read += n
	}
	return read, nil
}
