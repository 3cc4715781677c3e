package archives

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Files are the attachments of a snapshot on their way to a directory of this machine. They come
// into a directory beside it first, which then takes its place at once. A nil *Files does nothing.
type Files struct {
	archives  *Archives
	snapshot  catalog.Snapshot
	dir       string
	mode      os.FileMode // of dir, if it is there
	temporary string      // empty: nothing was fetched, or it has its place
}

// The modes of what is new.
const (
	dirMode  = 0o755
	fileMode = 0o644
)

// AttachmentsTo returns the attachments of a snapshot, which are to come into a directory. That must
// be empty or not there. It returns nil if dir is empty.
func (a *Archives) AttachmentsTo(s catalog.Snapshot, dir string) (*Files, error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // nobody asked for them
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find directory %s: %w", dir, err)
	}
	f := &Files{archives: a, snapshot: s, dir: whole}
	if resolved, err := filepath.EvalSymlinks(whole); err == nil {
		f.dir = resolved
	}
	info, err := os.Stat(f.dir)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(f.dir)); err != nil {
			return nil, fmt.Errorf("write attachments to %s: %w", dir, err)
		}
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("write attachments to %s: %w", dir, err)
	}
	f.mode = info.Mode()
	content, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("write attachments to %s: %w", dir, err)
	}
	if len(content) > 0 {
		return nil, fmt.Errorf("write attachments to %s: it is not empty", dir)
	}
	return f, nil
}

// Fetch reads all attachments into a directory beside the one that they are to come into.
func (f *Files) Fetch(ctx context.Context, p plan.Progress) error {
	if f == nil {
		return nil
	}
	p.Status("attachments", "reading attachments")
	f.temporary = filepath.Join(filepath.Dir(f.dir), "."+filepath.Base(f.dir)+"-"+rand.Text())
	if err := os.Mkdir(f.temporary, dirMode); err != nil {
		return fmt.Errorf("write attachments: %w", err)
	}
	if f.mode != 0 {
		if err := os.Chmod(f.temporary, f.mode.Perm()); err != nil {
			return fmt.Errorf("write attachments: %w", err)
		}
	}
	return f.archives.readAttachments(ctx, f.snapshot, f.snapshot.Attachments, f.fetch)
}

func (f *Files) fetch(name string, read func(out io.Writer) error) error {
	out, err := os.OpenFile(filepath.Join(f.temporary, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("write attachments: %w", err)
	}
	return errors.Join(read(out), out.Close())
}

// Place gives the files their place.
func (f *Files) Place() error {
	if f == nil {
		return nil
	}
	if f.mode != 0 {
		if err := os.Remove(f.dir); err != nil { // somebody may have put something into it
			return fmt.Errorf("write attachments: %w", err)
		}
	}
	if err := os.Rename(f.temporary, f.dir); err != nil {
		return errors.Join(fmt.Errorf("write attachments: %w", err), f.makeAgain())
	}
	f.temporary = ""
	return nil
}

// Remove takes the files away again, and leaves the directory as it was.
func (f *Files) Remove() error {
	if f == nil {
		return nil
	}
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("remove attachments again: %w", err)
	}
	return f.makeAgain()
}

// makeAgain makes the empty directory that was there.
func (f *Files) makeAgain() error {
	if f.mode == 0 {
		return nil
	}
	if err := os.Mkdir(f.dir, f.mode.Perm()); err != nil {
		return fmt.Errorf("make directory again: %w", err)
	}
	return nil
}

// Discard removes what has not got its place.
func (f *Files) Discard() {
	if f != nil && f.temporary != "" {
		_ = os.RemoveAll(f.temporary)
	}
}
