//go:build linux

package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// imagesDir holds what is known of the root filesystems of images.
const imagesDir = "images"

// maxImages is how many of them are kept: the ones that were written last. Each can be found out again.
const maxImages = 64

// OpenImage opens the manifest of a root filesystem. None of its pieces is stored.
func (s *Store) OpenImage(key string) (*Manifest, error) {
	m, err := s.openManifest(s.imagePath(key))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("image %s is not known in the store: %w", key, errdefs.ErrNotFound)
	}
	return m, err
}

// CopyImage writes to out what is kept under a key, as it is. It writes nothing if that is not there, or longer than most.
func (s *Store) CopyImage(key string, most int64, out io.Writer) error {
	file, err := openRegular(s.imagePath(key), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read image %s: %w", key, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && info.Size() <= most {
		_, err = io.Copy(out, io.LimitReader(file, most))
	}
	if err != nil {
		return fmt.Errorf("read image %s: %w", key, err)
	}
	return nil
}

// KeepImage keeps the manifest of a root filesystem, and forgets the oldest ones if there are too many.
func (s *Store) KeepImage(key string, content []byte) error {
	if err := s.disk.mkdir(s.path(imagesDir)); err != nil {
		return fmt.Errorf("keep image: %w", err)
	}
	if err := s.disk.replace(s.imagePath(key), s.temporary("image"), content); err != nil {
		return fmt.Errorf("keep image: %w", err)
	}
	return s.forgetImages()
}

func (s *Store) forgetImages() error {
	files, err := os.ReadDir(s.path(imagesDir))
	if err != nil {
		return fmt.Errorf("forget images: %w", err)
	}
	var all []os.FileInfo
	for _, f := range files {
		if info, err := f.Info(); err == nil { // else somebody has just removed it
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range all[min(len(all), maxImages):] {
		if err := s.disk.remove(s.path(imagesDir, old.Name())); err != nil {
			return fmt.Errorf("forget image: %w", err)
		}
	}
	return nil
}

func (s *Store) imagePath(key string) string { return s.path(imagesDir, key+".man") }

// ReadManifest reads a manifest that is not in the store: it names no packs. Whatever is wrong with it is a [DamagedError].
func (s *Store) ReadManifest(name string, content []byte) (*Manifest, error) {
	m := &Manifest{file: io.NopCloser(nil), name: filepath.Base(name)}
	reader, err := manifest.NewReader(bytes.NewReader(content), int64(len(content)), s.packs)
	if err != nil {
		return nil, m.damaged(err)
	}
	m.reader = reader
	return m, nil
}
