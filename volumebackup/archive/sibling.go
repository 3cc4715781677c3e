//go:build linux

package archive

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// RestoreEach makes several volumes what one archive says. The content of files is read from the store, checked and
// decompressed once: the first volume gets it from there, and the others from the first, which nobody else has mounted
// yet. The results are in the order of the mounts.
func RestoreEach(ctx context.Context, s *store.Store, o RestoreOptions, mounts []Mount, reporter Reporter, counter *Counter) ([]RestoreResult, error) {
	results := make([]RestoreResult, len(mounts))
	for i, m := range mounts {
		o.Mount = m
		if i > 0 {
			o.sibling = mounts[0].Path
		}
		var err error
		if results[i], err = Restore(ctx, s, o, reporter, counter); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// source is where the content of one file is read from.
type source struct {
	store   *store.Store
	buffer  *store.Buffer
	sibling int // the same file in a volume that was restored from the same archive; -1: there is none
}

// openSource opens where the content of a file is read from. A file that cannot be read in the other volume (its kernel
// or its filesystem did not allow to make it) comes from the store.
func (r *restore) openSource(e *manifest.Entry, buffer *store.Buffer) source {
	from := source{store: r.store, buffer: buffer, sibling: -1}
	if r.like != nil {
		if fd, err := r.like.openFile(e.Path); err == nil {
			from.sibling = fd
		}
	}
	return from
}

func (s source) close() {
	if s.sibling >= 0 {
		closeFD(s.sibling)
	}
}

// read returns the bytes of a piece of the file at path. They are valid until the buffer is used again.
func (s source) read(p *manifest.Piece, path string) ([]byte, error) {
	if s.sibling >= 0 {
		content := s.buffer.Room(int(p.Length))
		if n, err := readAt(s.sibling, content, p.Offset); err == nil && n == len(content) {
			return content, nil
		}
	}
	return s.store.ReadPiece(p, path, s.buffer)
}

// readAt reads until b is full, or the file ends.
func readAt(fd int, b []byte, offset int64) (n int, err error) {
	for n < len(b) {
		got, err := unix.Pread(fd, b[n:], offset+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil || got == 0 {
			return n, err
		}
		n += got
	}
	return n, nil
}
