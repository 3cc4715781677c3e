//go:build linux

package archivetest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// The lines of diff -rq --no-dereference.
var (
	onlyIn     = regexp.MustCompile(`^Only in (.*): (.*)$`)
	differ2    = regexp.MustCompile(`^(?:Files|Symbolic links) (.*) and (.*) differ$`)
	otherTypes = regexp.MustCompile(`^File (.*) is an? (.*) while file (.*) is an? (.*)$`)
)

// Differences asks diff for what differs in content and type, and the kernel for attributes.
func Differences(t testing.TB, before, after string) []changes.Change {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "diff", "-rq", "--no-dereference", before, after).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		assert.Equal(t, failed.ExitCode(), 1)
	}
	found := map[string]changes.Type{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if m := onlyIn.FindStringSubmatch(line); m != nil {
			path, kind := filepath.Join(m[1], m[2]), changes.Created
			root := after
			if strings.HasPrefix(path, before) {
				root, kind = before, changes.Deleted
			}
			below(t, root, path, kind, found)
		} else if m := differ2.FindStringSubmatch(line); m != nil {
			found[relative(t, before, m[1])] = changes.Modified
		} else if m := otherTypes.FindStringSubmatch(line); m != nil {
			if m[2] == m[4] { // two FIFOs
				continue
			}
			found[relative(t, before, m[1])] = changes.Modified
			if m[2] == "directory" {
				below(t, before, m[1], changes.Deleted, found)
			} else if m[4] == "directory" {
				below(t, after, m[3], changes.Created, found)
			}
			found[relative(t, before, m[1])] = changes.Modified
		} else {
			t.Fatalf("diff says %q", line)
		}
	}
	attributes(t, before, after, found)
	all := []changes.Change{}
	for path, kind := range found {
		all = append(all, changes.Change{Path: path, Type: kind, SizeDelta: sizeOf(after, path) - sizeOf(before, path)})
	}
	slices.SortFunc(all, func(a, b changes.Change) int { return manifest.Compare(a.Path, b.Path) })
	return all
}

func relative(t testing.TB, root, path string) string {
	t.Helper()
	name, err := filepath.Rel(root, path)
	assert.NilError(t, err)
	return strings.TrimPrefix(name, ".")
}

// below enters everything in a path.
func below(t testing.TB, root, path string, kind changes.Type, found map[string]changes.Type) {
	t.Helper()
	assert.NilError(t, filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		found[relative(t, root, path)] = kind
		return err
	}))
}

// attributes enters what is on both sides, and differs in what lstat and lgetxattr tell.
func attributes(t testing.TB, before, after string, found map[string]changes.Type) {
	t.Helper()
	assert.NilError(t, filepath.WalkDir(before, func(path string, entry fs.DirEntry, err error) error {
		name := relative(t, before, path)
		if _, known := found[name]; known {
			return err
		}
		var a, b unix.Stat_t
		assert.NilError(t, unix.Lstat(path, &a))
		assert.NilError(t, unix.Lstat(filepath.Join(after, name), &b))
		switch {
		case !entry.IsDir() && a.Mtim != b.Mtim:
			found[name] = changes.Modified
		case a.Mode != b.Mode || a.Uid != b.Uid || a.Gid != b.Gid || xattr(path) != xattr(filepath.Join(after, name)):
			found[name] = changes.PermissionsChanged
		}
		return err
	}))
}

const testXattr = "user.test"

func xattr(path string) string {
	var value [64]byte
	n, err := unix.Lgetxattr(path, testXattr, value[:])
	if err != nil {
		return ""
	}
	return "=" + string(value[:n])
}

func sizeOf(root, path string) int64 {
	info, err := os.Lstat(filepath.Join(root, path))
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}
