//go:build linux

package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// keyFile holds the key of the store's fingerprints.
const keyFile = "key"

// FingerprintKey reads the store's key, and makes it on first use. If the key is lost, every block of a file that
// has changed is hashed once more.
func (s *Store) FingerprintKey() (*manifest.FingerprintKey, error) {
	path := s.path(keyFile)
	for {
		key, err := readKey(path)
		if err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
		if len(key) == manifest.KeyLength {
			return manifest.NewFingerprintKey(key)
		}
		if key != nil { // another process died while it wrote it, or somebody has put something else there
			if err := s.disk.remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("make store: %w", err)
			}
		}
		key = make([]byte, manifest.KeyLength)
		_, _ = rand.Read(key) // never fails
		if err := s.makeOnce(path, key); err != nil {
			return nil, err
		}
	}
}

// readKey returns nil if there is none, and nothing else if what is there is no file.
func readKey(path string) ([]byte, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, errNotRegular) {
		return []byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, manifest.KeyLength+1))
}
