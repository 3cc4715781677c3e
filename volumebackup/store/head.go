//go:build linux

package store

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// OpenHead opens the manifest that a volume last matched, or returns nil. A piece that is not stored any more, or is
// in a pack that has changed, has no location, and its file is unsettled.
func (s *Store) OpenHead(volume string) (*Manifest, error) {
	return s.openHead(s.headPath(volume))
}

func (s *Store) openHead(path string) (*Manifest, error) {
	m, err := s.openCache(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // no head is no error
	}
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Clone(m.Packs()) {
		if damaged, ok := errors.AsType[*DamagedError](s.seen.check(s, id)); ok {
			m.reader.DropPack(id)
			m.lost = append(m.lost, damaged)
		}
	}
	return m, nil
}

// Recorded are the folders of the store in root that are written while volumes are restored: where heads are, and where they are
// made.
func Recorded(root string) []string {
	return []string{filepath.Join(root, "volumes"), filepath.Join(root, "tmp")}
}

// DropHead makes the store forget what a volume holds, before the volume is changed.
func (s *Store) DropHead(volume string) error { return s.dropHead(s.headPath(volume)) }

func (s *Store) dropHead(path string) error {
	if err := s.checkHeadDir(path); err != nil {
		return fmt.Errorf("drop head: %w", err)
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := s.disk.remove(path); err != nil {
		return fmt.Errorf("drop head: %w", err)
	}
	if err := s.disk.syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("drop head: %w", err)
	}
	return nil
}

// WriteHead calls write to fill a new head for a volume. The head takes effect if all goes well.
func (s *Store) WriteHead(volume string, write func(*manifest.Writer) error) error {
	return s.writeHead(s.headPath(volume), write)
}

func (s *Store) writeHead(path string, write func(*manifest.Writer) error) error {
	temporary := s.temporary("head")
	_, err := s.writeManifest(temporary, write)
	if err == nil {
		err = s.disk.syncFile(temporary)
	}
	if err == nil {
		err = s.putHead(path, temporary)
	}
	if err != nil {
		return errors.Join(err, s.disk.remove(temporary))
	}
	return s.disk.syncDir(filepath.Dir(path))
}

// linkHead makes a published manifest the head of a volume. It does not sync: an older head that a crash brings back
// is still true, only less useful.
func (s *Store) linkHead(volume, published string) error {
	temporary := s.temporary("head")
	err := s.disk.link(published, temporary)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) { // a filesystem without hard links
		err = s.copyFile(published, temporary)
	}
	if err != nil {
		return fmt.Errorf("make head of %s: %w", volume, err)
	}
	return s.putHead(s.headPath(volume), temporary)
}

func (s *Store) putHead(path, temporary string) error {
	err := s.checkHeadDir(path)
	if err == nil {
		err = s.disk.mkdir(filepath.Dir(path))
	}
	if err == nil {
		err = s.disk.rename(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("make head: %w", err)
	}
	return nil
}

// checkHeadDir removes what is not the directory of a head: a symlink could lead anywhere.
func (s *Store) checkHeadDir(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Lstat(dir)
	if err != nil || info.IsDir() {
		return nil //nolint:nilerr // what uses it next says what is wrong
	}
	return s.disk.remove(dir)
}

func (s *Store) copyFile(from, to string) error {
	in, err := openRegular(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := s.disk.create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// hashedPrefix begins the names of directories whose volumes have names that no file should have.
const hashedPrefix = "~"

// headPath is where the head of a volume is. A name that a directory cannot have is hashed.
func (s *Store) headPath(volume string) string {
	if len(volume) > maxVolume || !plainVolume.MatchString(volume) {
		volume = fmt.Sprintf(hashedPrefix+"%x", sha256.Sum256([]byte(volume)))
	}
	return s.path("volumes", volume, "head")
}

// temporary is a name in tmp that nobody else uses. Process ids would not do: in its
// container every worker has the same.
func (s *Store) temporary(name string) string { return s.path("tmp", name+"."+rand.Text()) }
