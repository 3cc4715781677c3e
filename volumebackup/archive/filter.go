//go:build linux

package archive

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/exclude"
)

// filter decides during one walk which entries are archived. It reads the .gitignore files of the directories that
// the walk is going to enter, and opens no directory that is left out.
type filter struct {
	matcher *exclude.Matcher // nil: all are
	tooLong func(path string)
}

func newFilter(e *labels.Exclusions, kept func(path string) (bool, error), tooLong func(path string)) filter {
	if e.IsEmpty() {
		return filter{}
	}
	return filter{matcher: exclude.New(*e, kept), tooLong: tooLong}
}

// decide says what becomes of an entry. It is asked about every entry of the walk.
func (f *filter) decide(at *found) (exclude.Verdict, error) {
	if f.matcher == nil {
		return exclude.Take, nil
	}
	isDir := at.stat.Mode&unix.S_IFMT == unix.S_IFDIR
	verdict, err := f.matcher.Visit(at.path, isDir)
	if err != nil || !isDir || at.mount || !f.matcher.WantsGitignore() {
		return verdict, err
	}
	text, err := readGitignore(at)
	if err != nil {
		return verdict, pathError("read .gitignore of", at.path, err)
	}
	if !f.matcher.Gitignore(text) {
		f.tooLong(at.path)
	}
	return verdict, nil
}

// tooLongGitignore is what users hear of a .gitignore that is too long.
var tooLongGitignore = fmt.Sprintf("its .gitignore does not count: it, or all above, are longer than %d KiB", exclude.MaxGitignore>>10)

// readGitignore reads the .gitignore of a directory, and one byte more than counts. As for git, one that is no file
// is none.
func readGitignore(at *found) ([]byte, error) {
	dir, err := openAt(at.dir, at.name, unix.O_PATH|unix.O_DIRECTORY, 0)
	if vanished(err) || denied(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closeFD(dir)
	fd, err := openAt(dir, ".gitignore", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if vanished(err) || denied(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closeFD(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, err
	}
	text := make([]byte, min(st.Size, exclude.MaxGitignore+1))
	n, err := readFull(fd, text, 0)
	if errors.Is(err, unix.ESTALE) {
		return nil, nil
	}
	return text[:n], err
}
