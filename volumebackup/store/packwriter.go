//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

const (
	packBuffer = 1 << 20

	// packAhead is how much is handed to the disk at a time while the pack grows, so that the sync at the end has
	// little left to write.
	packAhead = 16 << 20
)

// PackWriter appends pieces to a pack. The file is made with the first piece.
type PackWriter struct {
	path   string
	disk   *disk
	id     manifest.PackID
	name   string // of the pack
	file   *file
	buffer []byte
	offset int64 // of the end of buffer
	ahead  int64 // up to here the kernel was asked to write
}

// Add appends a piece of the file at path as it is to be stored, and says where.
func (w *PackWriter) Add(path string, whole bool, p *manifest.Piece, modified manifest.Timestamp, codec manifest.Codec, stored []byte) (manifest.Location, error) {
	if err := w.open(); err != nil {
		return manifest.Location{}, err
	}
	name := path
	if !whole {
		name += "@" + strconv.FormatInt(p.Offset, 10)
	}
	if codec == manifest.Zstd {
		name += ".zst"
	}
	before := len(w.buffer)
	w.buffer = appendMember(w.buffer, name, int64(len(stored)), modified.Sec)
	data := w.offset + int64(len(w.buffer)-before)
	w.buffer = append(w.buffer, stored...)
	w.buffer = append(w.buffer, make([]byte, padding(int64(len(stored))))...)
	w.offset += int64(len(w.buffer) - before)
	if len(w.buffer) >= packBuffer {
		if err := w.flush(); err != nil {
			return manifest.Location{}, err
		}
	}
	return manifest.Location{Pack: w.id, Codec: codec, Stored: uint32(len(stored)), Offset: data}, nil
}

func (w *PackWriter) open() error {
	if w.file != nil {
		return nil
	}
	f, err := w.disk.create(w.path)
	if err != nil {
		return fmt.Errorf("create pack: %w", err)
	}
	w.file = f
	w.buffer = appendPackHeader(make([]byte, 0, 2*packBuffer), w.name, 0) // the length follows at the end
	w.offset = packHeader
	return nil
}

func (w *PackWriter) flush() error {
	if _, err := w.file.Write(w.buffer); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	w.buffer = w.buffer[:0]
	if w.offset-w.ahead >= packAhead {
		// Only a hint: the sync at the end is what counts.
		_ = unix.SyncFileRange(int(w.file.Fd()), w.ahead, w.offset-w.ahead, unix.SYNC_FILE_RANGE_WRITE)
		w.ahead = w.offset
	}
	return nil
}

// finish ends the tar, and syncs and closes the file. It returns the file's size.
func (w *PackWriter) finish() (int64, error) {
	if w.file == nil {
		return 0, nil
	}
	w.buffer = append(w.buffer, make([]byte, tarEnd)...)
	w.offset += tarEnd
	err := w.flush()
	if err == nil {
		_, err = w.file.WriteAt(appendPackHeader(nil, w.name, w.offset), 0)
	}
	if err == nil {
		err = w.file.Sync()
	}
	err = errors.Join(err, w.close())
	if err != nil {
		return 0, fmt.Errorf("finish pack: %w", err)
	}
	return w.offset, nil
}

func (w *PackWriter) close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
