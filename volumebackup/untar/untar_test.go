package untar

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// member is an entry of a tar: a directory if its name ends with a slash, a symlink if it has a target.
type member struct{ name, content, target, first string }

var modified = time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)

func tarOf(t testing.TB, members ...member) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		h := &tar.Header{Format: tar.FormatPAX, Name: m.name, Mode: 0o640, Size: int64(len(m.content)), ModTime: modified, Typeflag: tar.TypeReg, Uid: os.Geteuid(), Gid: os.Getegid()}
		switch {
		case strings.HasSuffix(m.name, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o750
		case m.target != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.target
		case m.first != "":
			h.Typeflag, h.Linkname = tar.TypeLink, m.first
		}
		assert.NilError(t, w.WriteHeader(h))
		_, err := w.Write([]byte(m.content))
		assert.NilError(t, err)
	}
	assert.NilError(t, w.Close())
	return &out
}

// unpack unpacks to a path, and returns the warnings.
func unpack(ctx context.Context, to string, content *bytes.Buffer) (warnings []string, err error) {
	d, err := Open(to)
	if err != nil {
		return nil, err
	}
	err = d.Unpack(ctx, content, Reporter{Warn: func(_, message string) { warnings = append(warnings, message) }})
	return warnings, errors.Join(err, d.Close())
}

// tree describes what is in a directory.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	assert.NilError(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		name, err := filepath.Rel(dir, p)
		switch {
		case err != nil:
		case e.IsDir():
			all[name+"/"] = ""
		case e.Type() == fs.ModeSymlink:
			all[name], err = os.Readlink(p)
		default:
			var content []byte
			content, err = os.ReadFile(p)
			all[name] = string(content)
		}
		return err
	}))
	return all
}

func TestDestinationsAreThoseOfDockerCp(t *testing.T) {
	file := []member{{name: "src", content: "new"}}
	directory := []member{{name: "src/"}, {name: "src/in", content: "new"}}
	inside := []member{{name: "./"}, {name: "./in", content: "new"}}
	for name, test := range map[string]struct {
		members []member
		to      string
		want    map[string]string // besides what is there; nil: it fails
		says    string
	}{
		"a file to a new name":                       {file, "new", map[string]string{"new": "new"}, ""},
		"a file to a new directory":                  {file, "new/", nil, "cannot copy to {}new/: there is no such directory"},
		"a file over a file":                         {file, "file", map[string]string{"file": "new"}, ""},
		"a file into a directory":                    {file, "dir", map[string]string{"dir/src": "new"}, ""},
		"a file into a directory with a slash":       {file, "dir/", map[string]string{"dir/src": "new"}, ""},
		"a file into a file with a slash":            {file, "file/", nil, "cannot copy to {}file/: it is not a directory"},
		"a file below a file":                        {file, "file/x", nil, "cannot copy to {}file/x: it is not a directory"},
		"a file below nothing":                       {file, "no/x", nil, "cannot copy to {}no/x: there is no directory {}no"},
		"a file over a directory":                    {[]member{{name: "sub", content: "new"}}, "dir", nil, "cannot copy to {}dir/sub: a file cannot take the place of a directory"},
		"a file over a symlink":                      {file, "link", map[string]string{"file": "new"}, ""},
		"a directory to a new name":                  {directory, "new", map[string]string{"new/": "", "new/in": "new"}, ""},
		"a directory to a new name with a slash":     {directory, "new/", map[string]string{"new/": "", "new/in": "new"}, ""},
		"a directory over a file":                    {directory, "file", nil, "cannot copy to {}file: a directory cannot take the place of a file"},
		"a directory into a directory":               {directory, "dir", map[string]string{"dir/src/": "", "dir/src/in": "new"}, ""},
		"the content of a directory into a new name": {inside, "new", map[string]string{"new/": "", "new/in": "new"}, ""},
		"the content of a directory into another":    {inside, "dir", map[string]string{"dir/in": "new"}, ""},
		"the content of a directory into itself":     {inside, "dir/.", map[string]string{"dir/in": "new"}, ""},
		"a directory over a symlink to one":          {[]member{{name: "out/"}, {name: "out/in"}}, "dir", nil, "cannot copy to {}dir/out: a directory cannot take the place of a file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, one := range []string{"dir/sub", "elsewhere"} {
				assert.NilError(t, os.MkdirAll(filepath.Join(dir, one), 0o755))
			}
			assert.NilError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o600))
			assert.NilError(t, os.Symlink("file", filepath.Join(dir, "link")))
			assert.NilError(t, os.Symlink("../elsewhere", filepath.Join(dir, "dir/out")))
			want := tree(t, dir)
			_, err := unpack(t.Context(), dir+"/"+test.to, tarOf(t, test.members...))
			if test.want == nil {
				assert.Error(t, err, strings.ReplaceAll(test.says, "{}", dir+"/"))
			} else {
				assert.NilError(t, err)
			}
			maps.Copy(want, test.want)
			assert.DeepEqual(t, tree(t, dir), want)
		})
	}
}

func TestAttributesAreSetAtLast(t *testing.T) {
	dir := t.TempDir()
	_, err := unpack(t.Context(), dir, tarOf(t, member{name: "a/"}, member{name: "a/b/"}, member{name: "a/b/file", content: "x"}, member{name: "a/link", first: "a/b/file"}))
	assert.NilError(t, err)
	for path, mode := range map[string]fs.FileMode{"a": fs.ModeDir | 0o750, "a/b": fs.ModeDir | 0o750, "a/b/file": 0o640} {
		info, err := os.Lstat(filepath.Join(dir, path))
		assert.NilError(t, err)
		assert.Equal(t, info.Mode(), mode, path)
		assert.Assert(t, info.ModTime().Equal(modified), path)
	}
	one, err := os.Stat(filepath.Join(dir, "a/b/file"))
	assert.NilError(t, err)
	other, err := os.Stat(filepath.Join(dir, "a/link"))
	assert.NilError(t, err)
	assert.Assert(t, os.SameFile(one, other))
}

// A file keeps a date that Go cannot count in nanoseconds.
func TestDatesThatAreFarAway(t *testing.T) {
	for _, year := range []int{1905, 1960, 2300} {
		date := time.Date(year, 2, 3, 4, 5, 6, 0, time.UTC)
		dir := t.TempDir()
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, h := range []tar.Header{{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "d/file", Typeflag: tar.TypeReg, Mode: 0o644}} {
			h.Format, h.ModTime, h.Uid, h.Gid = tar.FormatPAX, date, os.Geteuid(), os.Getegid()
			assert.NilError(t, w.WriteHeader(&h))
		}
		assert.NilError(t, w.Close())
		_, err := unpack(t.Context(), dir, &out)
		assert.NilError(t, err)
		for _, path := range []string{"d", "d/file"} {
			info, err := os.Lstat(filepath.Join(dir, path))
			assert.NilError(t, err)
			assert.Check(t, info.ModTime().Equal(date), "%s is of %s", path, info.ModTime())
		}
	}
}

// Whatever a tar says, nothing comes anywhere but into the destination.
func TestNothingLeavesTheDestination(t *testing.T) {
	for name, members := range map[string][]member{
		"upwards":                {{name: "src/"}, {name: "src/../../evil", content: "x"}},
		"upwards at first":       {{name: "../evil", content: "x"}},
		"another name":           {{name: "src/"}, {name: "evil", content: "x"}},
		"a longer name":          {{name: "src/"}, {name: "srcevil", content: "x"}},
		"absolute":               {{name: "src/"}, {name: "/evil", content: "x"}},
		"through a symlink":      {{name: "src/"}, {name: "src/out", target: "../.."}, {name: "src/out/evil", content: "x"}},
		"through an absolute":    {{name: "src/"}, {name: "src/out", target: "{}"}, {name: "src/out/evil", content: "x"}},
		"a directory by symlink": {{name: "src/"}, {name: "src/out", target: "../.."}, {name: "src/out/"}},
		"a link to the outside":  {{name: "src/"}, {name: "src/evil", first: "src/../../secret"}},
		"a link by a symlink":    {{name: "src/"}, {name: "src/out", target: "../.."}, {name: "src/evil", first: "src/out/secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			dir := filepath.Join(outside, "dir")
			assert.NilError(t, os.Mkdir(dir, 0o755))
			assert.NilError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600))
			for i := range members {
				members[i].target = strings.ReplaceAll(members[i].target, "{}", outside)
			}
			_, err := unpack(t.Context(), dir, tarOf(t, members...))
			assert.Assert(t, err != nil)
			for path, content := range tree(t, outside) {
				assert.Assert(t, path == "dir/" || path == "secret" || strings.HasPrefix(path, "dir/src"), path)
				assert.Assert(t, !strings.HasSuffix(path, "evil"), "%s: %q", path, content)
			}
		})
	}
}

func TestAFileIsReplacedOnlyByAWholeOne(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "file")
	assert.NilError(t, os.WriteFile(at, []byte("old"), 0o600))
	whole := tarOf(t, member{name: "src", content: strings.Repeat("x", 100_000)})
	whole.Truncate(50_000)
	_, err := unpack(t.Context(), at, whole)
	assert.Error(t, err, "write "+at+": unpack tar: unexpected EOF")
	assert.DeepEqual(t, tree(t, dir), map[string]string{"file": "old"})

	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = unpack(over, at, tarOf(t, member{name: "src", content: "new"}))
	assert.ErrorIs(t, err, context.Canceled)
	assert.DeepEqual(t, tree(t, dir), map[string]string{"file": "old"})
}

func TestAnEmptyTarIsAnError(t *testing.T) {
	_, err := unpack(t.Context(), t.TempDir(), tarOf(t))
	assert.Error(t, err, "unpack tar: it is empty")
	_, err = unpack(t.Context(), t.TempDir(), bytes.NewBufferString(strings.Repeat("no tar", 1000)))
	assert.ErrorIs(t, err, tar.ErrHeader)
}

// What lends an owner's rights does not lend those of whoever unpacks it.
func TestOnlyTheOwnerLendsRights(t *testing.T) {
	h := &tar.Header{Mode: 0o7755, Uid: 5, Gid: 5, Typeflag: tar.TypeReg}
	for user, want := range map[int]fs.FileMode{
		0: 0o755 | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky,
		5: 0o755 | fs.ModeSetuid | fs.ModeSticky,
		6: 0o755 | fs.ModeSticky,
	} {
		assert.Equal(t, (&unpacking{user: user}).mode(h), want)
	}
}

// FuzzUnpack expects that no bytes make anything outside of the destination.
func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, member{name: "src/"}, member{name: "src/f", content: "x"}, member{name: "src/l", first: "src/f"}).Bytes())
	f.Add(tarOf(f, member{name: "src/"}, member{name: "src/out", target: "../../.."}, member{name: "src/out/evil", content: "x"}).Bytes())
	f.Add(tarOf(f, member{name: "./"}, member{name: "./\xff\n", content: "x"}).Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		outside := t.TempDir()
		dir := filepath.Join(outside, "dir")
		assert.NilError(t, os.Mkdir(dir, 0o755))
		assert.NilError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600))
		assert.NilError(t, os.Symlink("..", filepath.Join(dir, "up")))
		d, err := Open(dir)
		assert.NilError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a sparse file may be long
		defer cancel()
		_ = d.Unpack(ctx, bytes.NewReader(content), Reporter{Warn: func(string, string) {}})
		assert.NilError(t, d.Close())
		left, err := os.ReadDir(outside)
		assert.NilError(t, err)
		assert.Equal(t, len(left), 2)
		secret, err := os.Stat(filepath.Join(outside, "secret"))
		assert.NilError(t, err)
		assert.Equal(t, secret.Size(), int64(1))
		assert.Equal(t, secret.Mode(), fs.FileMode(0o600))
	})
}
