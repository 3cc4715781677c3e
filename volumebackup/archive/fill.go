//go:build linux

package archive

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// openFile creates a file or opens the one that is to be changed.
func (a *applier) openFile(at *place, e *manifest.Entry, s *step) (int, error) {
	dir, name, err := at.holder(e.Path)
	if err != nil {
		return -1, err
	}
	if s.action == actCreate {
		return openAt(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, a.firstMode(e))
	}
	fd, err := openAt(dir, name, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := prepareUpdate(fd, e, s); err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// prepareUpdate makes a file's size and holes right.
func prepareUpdate(fd int, e *manifest.Entry, s *step) error {
	if err := unix.Ftruncate(fd, e.Size); err != nil {
		return err
	}
	if !s.holes {
		return nil
	}
	for _, h := range e.Holes {
		length := h.Length
		if h.Offset+length == e.Size {
			length += wholeFile // else the block in which the file ends would only be cleared
		}
		err := unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, h.Offset, length)
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = writeZeros(fd, h)
		}
		if err != nil {
			return fmt.Errorf("punch hole: %w", err)
		}
	}
	return nil
}

// writeZeros stands in for a hole where there are none.
func writeZeros(fd int, h manifest.Range) error {
	zeros := make([]byte, min(h.Length, wholeFile))
	for end := h.Offset + h.Length; h.Offset < end; {
		n := min(end-h.Offset, int64(len(zeros)))
		if err := writeFull(fd, zeros[:n], h.Offset); err != nil {
			return err
		}
		h.Offset += n
	}
	return nil
}

// firstMode is the mode that a file is created with. Where nothing else would change it, it is the final one, which
// saves a call.
func (a *applier) firstMode(e *manifest.Entry) uint32 {
	if a.isPlain() && e.Mode&^0o777 == 0 {
		return e.Mode
	}
	return 0o600
}

// isPlain says that new files inherit no attributes from the directory.
func (a *applier) isPlain() bool { return a.plan.fresh && a.plan.plain }

// fill writes pieces of a file, and finishes it with the last ones.
func (a *applier) fill(t *task, at *place, buffer *store.Buffer) error {
	fd, err := a.target(t, at)
	if err != nil {
		return err
	}
	err = a.writePieces(fd, t, buffer)
	if t.file != nil && t.file.tasks.Add(-1) > 0 {
		return err
	}
	if err == nil {
		err = a.finishFile(fd, t, at)
	}
	if t.file != nil {
		a.open.close(fd)
	} else {
		closeFD(fd)
	}
	return err
}

// target is the file that a task writes to.
func (a *applier) target(t *task, at *place) (int, error) {
	if t.file != nil {
		return t.file.fd, nil
	}
	return a.openFile(at, t.entry, &t.step)
}

func (a *applier) writePieces(fd int, t *task, buffer *store.Buffer) error {
	from := a.openSource(t.entry, buffer)
	defer from.close()
	for i := range t.pieces {
		p := &t.pieces[i]
		content, err := from.read(p, t.entry.Path)
		if err != nil {
			return err
		}
		if err := t.write(fd, content, p.Offset); err != nil {
			return err
		}
		a.counter.Bytes.Add(int64(len(content)))
	}
	return nil
}

func (t *task) write(fd int, content []byte, offset int64) error {
	if t.file != nil {
		t.file.write.Lock()
		defer t.file.write.Unlock()
	}
	return writeAround(fd, content, offset, t.entry.Holes)
}

func (a *applier) finishFile(fd int, t *task, at *place) error {
	e := t.entry
	if t.step.action == actCreate && endsInHole(e) {
		if err := unix.Ftruncate(fd, e.Size); err != nil {
			return err
		}
	}
	dir, name, err := at.holder(e.Path)
	if err != nil {
		return err
	}
	a.counter.Files.Add(1)
	return a.setAttributes(dir, name, fd, e, t.step.action == actCreate)
}

func endsInHole(e *manifest.Entry) bool {
	if len(e.Holes) == 0 {
		return false
	}
	last := e.Holes[len(e.Holes)-1]
	return last.Offset+last.Length == e.Size
}

// writeAround writes those bytes of a piece that are in no hole.
func writeAround(fd int, content []byte, offset int64, holes []manifest.Range) error {
	end := offset + int64(len(content))
	at := offset
	for _, h := range holes {
		if h.Offset+h.Length <= at {
			continue
		}
		if h.Offset >= end {
			break
		}
		if h.Offset > at {
			if err := writeFull(fd, content[at-offset:h.Offset-offset], at); err != nil {
				return err
			}
		}
		at = h.Offset + h.Length
	}
	if at >= end {
		return nil
	}
	return writeFull(fd, content[at-offset:], at)
}

func writeFull(fd int, b []byte, offset int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(fd, b, offset)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
		offset += int64(n)
	}
	return nil
}

// makeSpecial makes what is neither a file nor a directory.
func (a *applier) makeSpecial(at *place, e *manifest.Entry) error {
	dir, name, err := at.holder(e.Path)
	if err != nil {
		return err
	}
	switch e.Kind {
	case manifest.Symlink:
		err = unix.Symlinkat(e.Target, dir, name)
	case manifest.FIFO:
		err = unix.Mknodat(dir, name, unix.S_IFIFO|0o600, 0)
	case manifest.Socket:
		err = unix.Mknodat(dir, name, unix.S_IFSOCK|0o600, 0)
	case manifest.BlockDevice:
		err = unix.Mknodat(dir, name, unix.S_IFBLK|0o600, device(e))
	case manifest.CharacterDevice:
		err = unix.Mknodat(dir, name, unix.S_IFCHR|0o600, device(e))
	default:
		return fmt.Errorf("kind %q", byte(e.Kind))
	}
	if errors.Is(err, unix.EPERM) {
		a.skip(e.Path, "left out", err)
		return nil
	}
	if err != nil {
		return err
	}
	a.counter.Files.Add(1)
	return a.setAttributes(dir, name, -1, e, true)
}

func device(e *manifest.Entry) int { return int(unix.Mkdev(e.Major, e.Minor)) }
