//go:build linux

package archive

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/exclude"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// maxIgnores bounds the .gitignore files of an archive that a restore keeps in memory.
const maxIgnores = 32 << 20

// spare finds what a restore leaves alone: what the archive does not have because it is excluded. The .gitignore files
// in the volume and those in the archive both count, for users may have changed them since. It also remembers what of
// the rest was not chosen.
type spare struct {
	now     filter            // with the .gitignore files in the volume
	then    *exclude.Matcher  // with those in the archive; nil: it has none
	ignores map[string][]byte // their content, by directory
	kept    kept              // an archive that was put back before, and that the volume may still have entries of
	open    []deletion        // directories above the present entry that are deleted
	holders []string          // of them, those that stay, for they hold something that is left alone
	mayHold bool              // something may be left alone
}

// deletion is a directory that the archive does not have as one.
type deletion struct {
	path    string
	becomes *manifest.Entry // nil: nothing
	spared  bool
}

func (r *restore) newSpare() (*spare, error) {
	s := &spare{now: newFilter(r.Mount.Excluded, nil, func(string) {})}
	s.mayHold = s.now.matcher != nil || r.Chosen != nil
	var err error
	if s.kept, err = openKept(r.store, r.Mount.Excluded); err != nil && !errdefs.IsNotFound(err) {
		return nil, err
	}
	if r.Mount.Excluded.IsEmpty() || !r.Mount.Excluded.Gitignore {
		return s, nil
	}
	m, err := r.manifest()
	if err != nil {
		s.kept.close()
		return nil, err
	}
	defer m.Close()
	if s.ignores, err = readIgnores(r.store, m); err != nil {
		s.kept.close()
		return nil, err
	}
	if len(s.ignores) > 0 {
		s.then = exclude.New(*r.Mount.Excluded, nil)
	}
	return s, nil
}

// readIgnores reads the .gitignore files in an archive, by directory.
func readIgnores(s *store.Store, m *store.Manifest) (map[string][]byte, error) {
	ignores := map[string][]byte{}
	var buffer store.Buffer
	for total := int64(0); ; {
		e, err := m.Next()
		if errors.Is(err, io.EOF) {
			return ignores, nil
		}
		if err != nil {
			return nil, err
		}
		if e.Kind != manifest.Regular || path.Base(e.Path) != ".gitignore" || e.Size > exclude.MaxGitignore || total+e.Size > maxIgnores {
			continue
		}
		total += e.Size
		if ignores[manifest.Parent(e.Path)], err = readEntry(s, e, &buffer); err != nil {
			return nil, err
		}
	}
}

// decide says of an entry of the volume whether it is excluded. It is asked about every entry of the walk.
func (s *spare) decide(f *found) (exclude.Verdict, error) {
	if s.now.matcher == nil {
		return exclude.Take, nil
	}
	verdict, err := s.decideByRules(f)
	if err != nil || verdict == exclude.Take {
		return verdict, err
	}
	if isKept, err := s.kept.has(f.path); err != nil || isKept {
		return exclude.Take, err
	}
	return verdict, nil
}

func (s *spare) decideByRules(f *found) (exclude.Verdict, error) {
	verdict, err := s.now.decide(f)
	if err != nil || s.then == nil {
		return verdict, err
	}
	isDir := f.stat.Mode&unix.S_IFMT == unix.S_IFDIR
	before, err := s.then.Visit(f.path, isDir)
	if err != nil {
		return verdict, err
	}
	if text, ok := s.ignores[f.path]; ok && isDir && s.then.WantsGitignore() {
		s.then.Gitignore(text)
	}
	if verdict == exclude.Take {
		return before, nil
	}
	return verdict, nil // if before is neither, it is the same: what is included does not depend on .gitignore files
}

// deleted notes that a directory is going to be deleted, or replaced by a manifest's entry. Files need not be noted.
func (s *spare) deleted(path string, becomes *manifest.Entry) {
	if !s.mayHold {
		return
	}
	s.close(path)
	s.open = append(s.open, deletion{path: path, becomes: becomes})
}

// hold leaves an entry alone, and so the directories that it is in.
func (s *spare) hold(path string) error {
	s.close(path)
	for i := range s.open {
		d := &s.open[i]
		if d.becomes != nil {
			return fmt.Errorf("replace %q: it holds %q, which is excluded from the snapshot, or was not chosen: %w", d.path, path, errdefs.ErrConflict)
		}
		if !d.spared {
			d.spared = true
			s.holders = append(s.holders, d.path)
		}
	}
	return nil
}

// close forgets the directories that an entry is not in.
func (s *spare) close(path string) {
	for n := len(s.open); n > 0 && !isIn(path, s.open[n-1].path); n-- {
		s.open = s.open[:n-1]
	}
}

// spare takes directories off what is deleted.
func (p *plan) spare(holders []string) {
	if len(holders) == 0 {
		return
	}
	p.spared = make(map[string]bool, len(holders))
	for _, path := range holders {
		p.spared[path] = true
	}
	p.changes[Deleted].Entries -= int64(len(holders))
}
