//go:build linux

package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// packHeader is the length of the beginning of a pack: a comment for tar that holds the pack's name and length.
// Reading it is enough to see that a pack is whole and the one that is meant.
const packHeader = 2 * tarBlock

// packDigits is how many digits the length has.
const packDigits = 20

// appendPackHeader appends the beginning of a pack.
func appendPackHeader(b []byte, name string, length int64) []byte {
	text := fmt.Sprintf(" comment=cua-pack %s %0*d\n", name, packDigits, length)
	size := len(text) + 2
	if size > 99 {
		size++
	}
	b = appendHeader(b, "pack", 'g', int64(size), 0)
	b = fmt.Appendf(b, "%d%s", size, text)
	return append(b, make([]byte, padding(int64(size)))...)
}

// checkIdentity tells why a file of that size is not the pack of that name.
func checkIdentity(in io.ReaderAt, size int64, name string) error {
	got := make([]byte, packHeader)
	if _, err := in.ReadAt(got, 0); errors.Is(err, io.EOF) {
		return fmt.Errorf("it is cut short: it has %d bytes", size)
	} else if err != nil {
		return err
	}
	if bytes.Equal(got, appendPackHeader(nil, name, size)) {
		return nil
	}
	if length, ok := statedLength(got); ok && bytes.Equal(got, appendPackHeader(nil, name, length)) {
		return fmt.Errorf("it has %d bytes instead of %d", size, length)
	}
	return errors.New("it is another file, or its beginning is damaged")
}

// statedLength reads the length in the beginning of a pack.
func statedLength(header []byte) (int64, bool) {
	record := bytes.TrimRight(header[tarBlock:], "\x00")
	if len(record) <= packDigits {
		return 0, false
	}
	var length int64
	_, err := fmt.Sscanf(string(record[len(record)-packDigits-1:]), "%d\n", &length)
	return length, err == nil && length >= 0
}

// checkPack tells why a pack is missing, cut short or another one. It does not read the pieces.
func (s *Store) checkPack(id manifest.PackID) error {
	f, err := openRegular(s.packPath(id), os.O_RDONLY)
	if err != nil {
		return s.damagedPack(id, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkIdentity(f, info.Size(), s.packs.Name(id))
	}
	return s.damagedPack(id, err)
}

func (s *Store) damagedPack(id manifest.PackID, err error) error {
	if err == nil {
		return nil
	}
	return &DamagedError{Pack: s.packFile(id), Offset: -1, Reason: reasonOf(err)}
}

// reasonOf says what is wrong with a file of the store, without where the store is.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "it is missing"
	case errors.Is(err, errNotRegular):
		return errNotRegular.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "it is cut short"
	default:
		return err.Error()
	}
}

// packChecks remembers which packs were looked at while the store is open.
type packChecks struct {
	mu    sync.Mutex
	found map[manifest.PackID]error
}

// check looks at a pack the first time that it is asked for.
func (c *packChecks) check(s *Store, id manifest.PackID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, ok := c.found[id]
	if !ok {
		err = s.checkPack(id)
		if c.found == nil {
			c.found = map[manifest.PackID]error{}
		}
		c.found[id] = err
	}
	return err
}

// forget makes the next check look at a pack again.
func (c *packChecks) forget(id manifest.PackID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.found, id)
}
