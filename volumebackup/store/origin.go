//go:build linux

package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Names beside the manifests of a snapshot.
const (
	originFile = "origin"
	missedFile = "missed"
)

// lookedFile is the name of a note in the root.
const lookedFile = "looked"

// maxNote is how many bytes of an origin, or of another note beside a snapshot's
// manifests, are read.
const maxNote = 1 << 20

// Origin says where a snapshot is from. It is published with the archives. What a
// later version adds, this one skips.
type Origin struct {
	Engine        string    `json:"engine"`         // the engine's ID
	ImageStore    string    `json:"image_store"`    // which of the engine's image stores has the image
	Container     string    `json:"container"`      // the container's ID
	ContainerName string    `json:"container_name"` // without the leading slash
	Published     time.Time `json:"published"`
}

// Describe says where the snapshot is from, before it is published.
func (d *Draft) Describe(o Origin) { d.origin = o }

// writeOrigin puts the origin beside the manifests.
func (d *Draft) writeOrigin() error {
	content, err := json.Marshal(d.origin)
	if err != nil {
		return fmt.Errorf("write origin: %w", err)
	}
	f, err := d.store.disk.create(filepath.Join(d.dir, originFile))
	if err != nil {
		return fmt.Errorf("write origin: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write origin: %w", err)
	}
	return nil
}

// origin reads where a snapshot is from; nil: that is not known, or not any more.
func (s *Store) origin(id string) (*Origin, error) {
	content, err := readNote(s.path("snapshots", id, originFile), maxNote)
	if err != nil || content == nil {
		return nil, err
	}
	return decodeOrigin(content), nil
}

// decodeOrigin reads an origin; nil if it is damaged.
func decodeOrigin(content []byte) *Origin {
	var o Origin
	if json.Unmarshal(content, &o) != nil {
		return nil
	}
	return &o
}

// readNote reads so many bytes at most of a small file that the store can do without;
// nil: there is none.
func readNote(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNotRegular) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// Claim names a snapshot that is to be removed, and says what its image tells of
// it: any image can claim an ID.
type Claim struct {
	Snapshot      string
	Container     string
	ContainerName string
	Roots         map[int]manifest.Sum // of its archives
}

// holds tells whether the archives are those that a claim is about. If they are damaged, their owner can still remove
// them.
func (s *Store) holds(c Claim) (bool, error) {
	origin, err := s.origin(c.Snapshot)
	if err != nil {
		return false, fmt.Errorf("read origin of %s: %w", c.Snapshot, err)
	}
	if origin != nil && (origin.Container != c.Container || origin.ContainerName != c.ContainerName) {
		return false, nil
	}
	for n, root := range c.Roots {
		r, err := s.openManifest(s.path("snapshots", c.Snapshot, strconv.Itoa(n)+".man"))
		if errors.Is(err, os.ErrNotExist) || errdefs.IsDataLoss(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		found := r.Summary().Root
		r.Close()
		if found != root {
			return false, nil
		}
	}
	return true, nil
}
