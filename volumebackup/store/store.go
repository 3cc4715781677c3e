//go:build linux

package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

const (
	formatLine    = "cua-store 1"
	maxFormatFile = 4096

	// lockPoll is how often a lock that is taken is tried again.
	lockPoll = 20 * time.Millisecond

	// defaultWait is how long to wait for others, as long as nobody says how long.
	defaultWait = 10 * time.Second
)

// maxVolume is checked beside the expression: every start of the plugin compiles it, and a counted repetition takes
// long.
const maxVolume = 255

// plainVolume matches the volume names that the engine's own driver allows; other drivers may allow more.
var plainVolume = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Store is a store that is open. Its methods may be called from several goroutines.
type Store struct {
	root  string
	disk  disk
	packs *manifest.PackTable
	wait  Patience
	files packFiles
	seen  packChecks
	unzip decompressor
}

// Open opens the store in root, and makes it on first use.
func Open(root string) (*Store, error) { return OpenFaulty(root, nil) }

// OpenFaulty opens a store for a test. It calls fault before each change on disk; if fault returns an error, the
// change fails with it. A write that fails leaves half of its bytes.
func OpenFaulty(root string, fault func(op, path string) error) (*Store, error) {
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved // below it there are none
	}
	s := &Store{root: root, disk: disk{fault: fault}, packs: manifest.NewPackTable(), wait: Patience{Wait: defaultWait}}
	s.files.store = s
	err := s.checkFormat()
	if errors.Is(err, unix.EROFS) { // mounted read-only: there is none, and none can be made
		return nil, fmt.Errorf("open store: there is nothing in it: %w", errdefs.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"snapshots", "volumes", "tmp"} {
		if err := s.disk.mkdir(s.path(dir)); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	return s, nil
}

// Close closes the packs that are open. It does not release locks: those who took them do.
func (s *Store) Close() error { return s.files.close() }

func (s *Store) path(elements ...string) string {
	return filepath.Join(s.root, filepath.Join(elements...))
}

// checkFormat reads the format file, or makes it if the store is new.
func (s *Store) checkFormat() error {
	path := s.path("format")
	f, err := openRegular(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return s.makeFormat(path)
	}
	if errors.Is(err, errNotRegular) {
		return notStore(reasonOf(err))
	}
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFormatFile))
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	switch found := strings.TrimSuffix(string(content), "\n"); {
	case found == formatLine:
		return nil
	case found == "": // whoever began to make it was cut short
		return s.writeFormat(path)
	case strings.HasPrefix(found, "cua-store "):
		return &VersionError{Found: found}
	default:
		return notStore(fmt.Sprintf("it begins with %.20q instead of %q", found, formatLine))
	}
}

// notStore is the error for a format file that is not one.
func notStore(why string) error {
	return fmt.Errorf("open store: %w, or the volume is no store of snapshots", &DamagedError{Pack: "format", Offset: -1, Reason: why})
}

// makeFormat makes the format file, and checks the one that is there then: another process may have made it.
func (s *Store) makeFormat(path string) error {
	if err := s.makeOnce(path, []byte(formatLine+"\n")); err != nil {
		return err
	}
	return s.checkFormat()
}

// makeOnce makes a file that is not there. If several processes do so at once, the first one wins.
func (s *Store) makeOnce(path string, content []byte) error {
	temporary := path + "." + rand.Text()
	f, err := s.disk.create(temporary)
	if err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = s.disk.place(temporary, path)
	}
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	if err = errors.Join(err, s.disk.remove(temporary)); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	return nil
}

// writeFormat writes the one line that the format file of this version has. Several processes may do so at once.
func (s *Store) writeFormat(path string) error {
	err := s.disk.may("write", path)
	if err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	f, err := openRegular(path, os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	_, err = f.WriteAt([]byte(formatLine+"\n"), 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	return nil
}

// Patience says how a store waits for others who use it.
type Patience struct {
	Wait    time.Duration // how long
	Waiting func()        // told once if it has to; nil: nobody is
}

// SetPatience says how to wait from now on. The default is ten seconds.
func (s *Store) SetPatience(p Patience) { s.wait = p }

// Share takes the lock for reading and adding, which several can hold at once. It waits for a removal to end.
func (s *Store) Share(ctx context.Context) (unlock func(), err error) {
	return s.lock(ctx, unix.LOCK_SH)
}

// lock takes a lock on the format file and returns what releases it.
func (s *Store) lock(ctx context.Context, how int) (unlock func(), err error) {
	f, err := s.openLock(how)
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	ticks := time.NewTicker(lockPoll)
	defer ticks.Stop()
	wait, cancel := context.WithTimeoutCause(ctx, s.wait.Wait, errBusy)
	defer cancel()
	for waited := false; ; {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock store: %w", err), f.Close())
		}
		if !waited && s.wait.Waiting != nil && s.wait.Wait > 0 {
			s.wait.Waiting()
			waited = true
		}
		select {
		case <-wait.Done():
			return nil, errors.Join(fmt.Errorf("lock store: it is in use: %w", context.Cause(wait)), f.Close())
		case <-ticks.C:
		}
	}
}

// openLock opens the file that is locked. To lock it alone it must be open for writing: NFS turns the lock into one
// on a range, which needs that.
func (s *Store) openLock(how int) (*os.File, error) {
	if how == unix.LOCK_EX {
		return openRegular(s.path("format"), os.O_RDWR)
	}
	return openRegular(s.path("format"), os.O_RDONLY)
}

// CheckID refuses what is no name of a snapshot.
func CheckID(id string) error {
	if !manifest.IsID(id) {
		return fmt.Errorf("snapshot id %q: %w", id, errdefs.ErrInvalidArgument)
	}
	return nil
}

func checkArchive(n int) error {
	if n < 0 || n > manifest.MaxArchive {
		return fmt.Errorf("archive number %d: %w", n, errdefs.ErrInvalidArgument)
	}
	return nil
}

// Snapshots lists the ids that have a manifest.
func (s *Store) Snapshots() ([]string, error) {
	all, err := os.ReadDir(s.path("snapshots"))
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var ids []string
	for _, dir := range all {
		if !dir.IsDir() {
			continue
		}
		archives, err := s.Archives(dir.Name())
		if err != nil && !errdefs.IsNotFound(err) {
			return nil, err
		}
		if len(archives) > 0 {
			ids = append(ids, dir.Name())
		}
	}
	return ids, nil
}

// Archives lists the numbers of a snapshot's archives.
func (s *Store) Archives(id string) ([]int, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(s.path("snapshots", id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("snapshot %s is not in the store: %w", id, errdefs.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	var numbers []int
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".man")
		if n, err := strconv.Atoi(name); ok && err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

func (s *Store) packPath(id manifest.PackID) string { return s.path(s.packFile(id)) }

// packFile is the path of a pack within the store.
func (s *Store) packFile(id manifest.PackID) string { return "snapshots/" + s.packs.Name(id) + ".tar" }
