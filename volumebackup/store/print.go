//go:build linux

package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/minio/highwayhash"
)

// keyFile holds the key of the prints, of highwayhash.Size bytes.
const keyFile = "key"

// Printer takes fingerprints of blocks, by which the same block is known again when its file has changed
// elsewhere. They are ten times as fast as SHA-256, which still is what a piece is checked against. The key never
// leaves the store, so nobody who writes to a volume can make two blocks look the same.
type Printer struct{ key []byte }

// Print is the fingerprint of a block. It is never zero, which stands for none.
func (p *Printer) Print(block []byte) uint64 {
	return max(1, highwayhash.Sum64(block, p.key))
}

// Printer reads the store's key, and makes it on first use. If it is lost, every block of a file that
// has changed is hashed once more.
func (s *Store) Printer() (*Printer, error) {
	path := s.path(keyFile)
	for {
		key, err := readKey(path)
		if err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
		if len(key) == highwayhash.Size {
			return &Printer{key: key}, nil
		}
		if key != nil { // somebody was cut short
			if err := s.disk.remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("make store: %w", err)
			}
		}
		key = make([]byte, highwayhash.Size)
		_, _ = rand.Read(key) // never fails
		if err := s.makeOnce(path, key); err != nil {
			return nil, err
		}
	}
}

// readKey returns nil if there is none.
func readKey(path string) ([]byte, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, highwayhash.Size+1))
}
