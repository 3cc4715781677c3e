//go:build linux

package worker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/untar"
)

// extractWorld is a worker whose store has a snapshot of one volume.
func extractWorld(t *testing.T, fill func(volume string)) (*world, *protocol.Client, protocol.ExtractRequest) {
	t.Helper()
	w := newWorld(t)
	fill(w.volume(0))
	c := w.connect()
	root := w.snapshot(c, "first", protocol.Mount{Number: 0, Key: "data"}).Archives[0].Root
	return w, c, protocol.ExtractRequest{Snapshot: "first", Root: root, Name: "out"}
}

// What comes out of an archive, and is unpacked, is what went in: every attribute, link and hole.
func TestExtractKeepsEverything(t *testing.T) {
	var want []string
	_, c, request := extractWorld(t, func(volume string) {
		archivetest.Build(t, volume)
		assert.NilError(t, os.Remove(filepath.Join(volume, "sparse/huge"))) // whoever reads a tar is given its zeros one by one
		assert.NilError(t, os.Remove(filepath.Join(volume, "special/socket")))
		want = archivetest.Describe(t, volume)
	})
	var warned []string
	dir := archivetest.Dir(t)
	d, err := untar.Open(dir)
	assert.NilError(t, err)
	in, out := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := d.Unpack(t.Context(), in, untar.Reporter{Warn: func(path, message string) { warned = append(warned, path+": "+message) }})
		_, _ = io.Copy(io.Discard, in) // the end of the tar
		unpacked <- err
	}()
	_, err = c.Extract(t.Context(), request, out, nil)
	assert.NilError(t, err)
	assert.NilError(t, out.Close())
	assert.NilError(t, <-unpacked)
	assert.NilError(t, d.Close())
	assert.Equal(t, len(warned), 0, "%v", warned)
	archivetest.Equal(t, archivetest.Describe(t, filepath.Join(dir, "out")), want)
}

// namesIn lists what is in the tar of a request, with the targets of links. If the path leads through a symlink, that is all.
func namesIn(t *testing.T, c *protocol.Client, request protocol.ExtractRequest) (names []string, contents map[string]string, err error) {
	t.Helper()
	var out bytes.Buffer
	result, err := c.Extract(t.Context(), request, &out, nil)
	if err != nil || result.Missing {
		return nil, nil, err
	}
	if result.Link != nil {
		assert.Equal(t, out.Len(), 0)
		return []string{fmt.Sprintf("through %s -> %s", result.Link.Path, result.Link.Target)}, nil, nil
	}
	contents = map[string]string{}
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, contents, nil
		}
		assert.NilError(t, err)
		name := h.Name
		if h.Linkname != "" {
			name += " -> " + h.Linkname
		}
		content, err := io.ReadAll(r)
		assert.NilError(t, err)
		names, contents[h.Name] = append(names, name), string(content)
	}
}

func TestExtractFindsThePart(t *testing.T) {
	_, c, whole := extractWorld(t, func(volume string) {
		for _, dir := range []string{"a/b", "a-b", "releases/2", "z"} {
			assert.NilError(t, os.MkdirAll(filepath.Join(volume, dir), 0o755))
		}
		for _, file := range []string{"a/b/f", "a-b/f", "releases/2/f", "z/last"} {
			assert.NilError(t, os.WriteFile(filepath.Join(volume, file), []byte(file), 0o644))
		}
		for link, target := range map[string]string{
			"current": "releases/2", "a/b/up": "../../current", "outside": "/etc",
		} {
			assert.NilError(t, os.Symlink(target, filepath.Join(volume, link)))
		}
		for _, name := range []string{"z/one", "z/two"} { // of a file whose first name is elsewhere
			assert.NilError(t, os.Link(filepath.Join(volume, "a/b/f"), filepath.Join(volume, name)))
		}
	})
	for name, test := range map[string]struct {
		path      string
		directory bool
		want      []string
		class     protocol.Class
	}{
		"a file":                       {"a-b/f", false, []string{"out"}, ""},
		"a directory":                  {"a", false, []string{"out/", "out/b/", "out/b/f", "out/b/up -> ../../current"}, ""},
		"a symlink":                    {"current", false, []string{"out -> releases/2"}, ""},
		"behind a symlink":             {"current/f", false, []string{"through current -> releases/2"}, ""},
		"a symlink as a directory":     {"current", true, []string{"through current -> releases/2"}, ""},
		"behind the first of two":      {"a/b/up/f", false, []string{"through a/b/up -> ../../current"}, ""},
		"behind one to the outside":    {"outside/passwd", false, []string{"through outside -> /etc"}, ""},
		"a file as a directory":        {"a-b/f", true, nil, protocol.Invalid},
		"nothing":                      {"a/none", false, nil, ""},
		"nothing, at the end":          {"zz", false, nil, ""},
		"below a file":                 {"a-b/f/x", false, nil, ""},
		"upwards":                      {"../x", false, nil, ""},
		"further names, first outside": {"z", false, []string{"out/", "out/last", "out/one", "out/two -> out/one"}, ""},
		"a further name":               {"z/two", false, []string{"out"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			request := whole
			request.Path, request.Directory = protocol.Path(test.path), test.directory
			names, contents, err := namesIn(t, c, request)
			if test.class != "" {
				assert.ErrorIs(t, err, test.class)
				return
			}
			assert.NilError(t, err)
			assert.DeepEqual(t, names, test.want)
			if name == "a further name" {
				assert.Equal(t, contents["out"], "a/b/f")
			}
		})
	}
	asked := whole
	asked.Path, asked.Follow = "current", true
	names, _, err := namesIn(t, c, asked)
	assert.NilError(t, err)
	assert.DeepEqual(t, names, []string{"through current -> releases/2"})
	for path, isThere := range map[protocol.Path]bool{"a/b": true, "a/b/f": false, "a/none": false} { // as a directory
		asked.Path, asked.Follow, asked.Directory, asked.Look = path, false, true, true
		var out bytes.Buffer
		result, err := c.Extract(t.Context(), asked, &out, nil)
		assert.Equal(t, err == nil && !result.Missing, isThere, path)
		assert.Equal(t, out.Len(), 0)
	}
	whole.Name = "."
	names, _, err = namesIn(t, c, whole)
	assert.NilError(t, err)
	assert.DeepEqual(t, names[:2], []string{"./", "./a/"})
}

// A tar is for standard tools, too.
func TestTarReadsWhatIsExtracted(t *testing.T) {
	_, c, request := extractWorld(t, func(volume string) {
		archivetest.Build(t, volume)
		assert.NilError(t, os.RemoveAll(filepath.Join(volume, "long"))) // longer than tar can name
		assert.NilError(t, os.Remove(filepath.Join(volume, "special/socket")))
	})
	var out bytes.Buffer
	_, err := c.Extract(t.Context(), request, &out, nil)
	assert.NilError(t, err)
	dir := archivetest.Dir(t)
	unpack := exec.CommandContext(t.Context(), "tar", "--extract", "--xattrs", "--xattrs-include=*", "--same-owner", "--directory", dir)
	unpack.Stdin = &out
	said, err := unpack.CombinedOutput()
	assert.NilError(t, err, string(said))
	var st unix.Stat_t
	assert.NilError(t, unix.Stat(filepath.Join(dir, "out/sparse/huge"), &st))
	assert.Equal(t, st.Size, int64(1<<40))
	assert.Assert(t, st.Blocks*512 < 1<<20, "%d", st.Blocks)
	lines := archivetest.Describe(t, filepath.Join(dir, "out"))
	for _, want := range []string{`"/names/\xff\xfe not utf-8" `, `"/names/new\nline" `, `mtime=1111111111.000000001`, `user.binary="\x00\xff\n"`, `trusted.t="root only"`, `"/sparse/middle" `} {
		assert.Assert(t, slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }), want)
	}
}

func TestSocketsAreLeftOutOfATar(t *testing.T) {
	_, c, request := extractWorld(t, func(volume string) { archivetest.Build(t, volume) })
	request.Path = "special/socket"
	var warned []string
	_, err := c.Extract(t.Context(), request, io.Discard, func(e protocol.Event) {
		if e.Warning != nil {
			warned = append(warned, string(e.Warning.Path)+": "+e.Warning.Message)
		}
	})
	assert.NilError(t, err)
	assert.DeepEqual(t, warned, []string{"special/socket: left out: a tar cannot hold a socket"})
}

func TestDamageIsNotExtractedInSilence(t *testing.T) {
	w, c, request := extractWorld(t, func(volume string) {
		assert.NilError(t, os.WriteFile(filepath.Join(volume, "file"), archivetest.Random(1, 1<<20), 0o644))
	})
	pack := filepath.Join(w.store, "snapshots/first/0.tar")
	content, err := os.ReadFile(pack)
	assert.NilError(t, err)
	content[len(content)/2] ^= 1
	assert.NilError(t, os.WriteFile(pack, content, 0o600))
	_, err = c.Extract(t.Context(), request, io.Discard, nil)
	assert.ErrorIs(t, err, protocol.Damaged)

	request.Root = strings.Repeat("ab", 32) // what the label of another snapshot says
	_, err = c.Extract(t.Context(), request, io.Discard, nil)
	assert.ErrorIs(t, err, protocol.Damaged)
}

func TestListSumsWholeFiles(t *testing.T) {
	var volume string
	_, c, _ := extractWorld(t, func(dir string) {
		volume = dir
		archivetest.Build(t, dir)
		assert.NilError(t, os.Remove(filepath.Join(dir, "sparse/huge"))) // a terabyte of zeros
	})
	checked := 0
	_, err := c.List(t.Context(), protocol.ListRequest{Snapshot: "first", Sums: true}, func(e protocol.Entry) {
		if e.Kind != "f" {
			assert.Equal(t, e.SHA256, "", e.Path)
			return
		}
		if len(e.Path) > 4000 { // longer than a path may be
			return
		}
		content, err := os.ReadFile(filepath.Join(volume, string(e.Path)))
		assert.NilError(t, err)
		assert.Equal(t, e.SHA256, fmt.Sprintf("%x", sha256.Sum256(content)), e.Path)
		checked++
	})
	assert.NilError(t, err)
	assert.Assert(t, checked > 20)
}
