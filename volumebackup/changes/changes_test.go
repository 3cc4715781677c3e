package changes

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// entries is a tree that is all there.
type entries []*manifest.Entry

func (l *entries) Next() (*manifest.Entry, error) {
	if len(*l) == 0 {
		return nil, io.EOF
	}
	first := (*l)[0]
	*l = (*l)[1:]
	return first, nil
}

func (l *entries) Read(*manifest.Entry) error { return nil }

func file(path string, size int64) *manifest.Entry {
	return &manifest.Entry{Path: path, Kind: manifest.Regular, Size: size}
}

// shared is the first name of a file that has several.
func shared(path string, size int64) *manifest.Entry {
	e := file(path, size)
	e.Shared = true
	return e
}

func further(path, first string) *manifest.Entry {
	return &manifest.Entry{Path: path, Kind: manifest.HardLink, Target: first}
}

func TestFilesWithSeveralNames(t *testing.T) {
	for name, test := range map[string]struct {
		old, new entries
		want     []Change
	}{
		"the same":                   {entries{shared("a", 1), further("b", "a")}, entries{shared("a", 1), further("b", "a")}, nil},
		"all names of a file change": {entries{shared("a", 1), further("b", "a")}, entries{shared("a", 3), further("b", "a")}, []Change{{"a", Modified, 2}, {"b", Modified, 0}}},
		"the first name goes":        {entries{shared("a", 1), further("b", "a")}, entries{file("b", 1)}, []Change{{"a", Deleted, -1}}},
		"one becomes two files":      {entries{shared("a", 1), further("b", "a")}, entries{file("a", 1), file("b", 1)}, []Change{{"b", Modified, 1}}},
		"two files become one":       {entries{file("a", 1), file("b", 1)}, entries{shared("a", 1), further("b", "a")}, []Change{{"b", Modified, -1}}},
		"a name before the first": {
			entries{shared("b", 1), further("c", "b")},
			entries{shared("a", 1), further("b", "a"), further("c", "a")},
			[]Change{{"a", Created, 1}},
		},
		"a name of another file": {
			entries{shared("a", 1), shared("b", 1), further("c", "a"), further("d", "b")},
			entries{shared("a", 1), shared("b", 1), further("c", "b"), further("d", "b")},
			[]Change{{"c", Modified, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Change
			assert.NilError(t, Compare(&test.old, &test.new, func(c Change) error {
				got = append(got, c)
				return nil
			}))
			assert.DeepEqual(t, got, test.want)
		})
	}
}

func TestVisitEndsComparison(t *testing.T) {
	stop := errors.New("stop")
	visited := 0
	err := Compare(nil, &entries{file("a", 1), file("b", 1)}, func(Change) error {
		visited++
		return stop
	})
	assert.ErrorIs(t, err, stop)
	assert.Equal(t, visited, 1)
}

// exported makes a tar of headers, whose files hold zeros.
func exported(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		assert.NilError(t, w.WriteHeader(&h))
		_, err := w.Write(make([]byte, h.Size))
		assert.NilError(t, err)
	}
	assert.NilError(t, w.Close())
	return out.Bytes()
}

func read(t testing.TB, list []byte) (all []string) {
	t.Helper()
	r, err := manifest.NewReader(bytes.NewReader(list), int64(len(list)), manifest.NewPackTable())
	assert.NilError(t, err)
	defer r.Close()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		assert.NilError(t, err)
		all = append(all, string(rune(e.Kind))+" "+e.Path+" "+e.Target)
	}
}

// An export comes in any order, and with what the engine has put into it.
func TestFromTar(t *testing.T) {
	var out bytes.Buffer
	assert.NilError(t, FromTar(bytes.NewReader(exported(
		t,
		tar.Header{Name: "z", Typeflag: tar.TypeReg, Size: 20 << 20, Mode: 0o644},
		tar.Header{Name: "a/b/c", Typeflag: tar.TypeLink, Linkname: "z"},
		tar.Header{Name: "etc/hosts", Typeflag: tar.TypeReg},
		tar.Header{Name: ".dockerenv", Typeflag: tar.TypeReg},
		tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/z"},
	)), &out))
	assert.DeepEqual(t, read(t, out.Bytes()), []string{"d  ", "d a ", "d a/b ", "f a/b/c ", "l l /z", "h z a/b/c"})
}

// An image has 1970 for dates that engines cannot count: a container's file of such a date is not a changed one.
func TestDatesThatAnImageCannotHold(t *testing.T) {
	for _, year := range []int{1960, 2300} {
		var image, live bytes.Buffer
		for out, date := range map[*bytes.Buffer]time.Time{&image: time.Unix(0, 0), &live: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)} {
			header := tar.Header{Name: "file", Typeflag: tar.TypeReg, Size: 3, ModTime: date, Format: tar.FormatPAX}
			assert.NilError(t, FromTar(bytes.NewReader(exported(t, header)), out))
		}
		assert.DeepEqual(t, image.Bytes(), live.Bytes())
	}
}

// FuzzFromTar expects that whatever an engine sends is refused, or becomes a manifest that can be read.
func FuzzFromTar(f *testing.F) {
	f.Add(exported(f, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 3}, tar.Header{Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}))
	f.Add(exported(f, tar.Header{Name: "d/", Typeflag: tar.TypeDir}, tar.Header{Name: "d/../../x", Typeflag: tar.TypeFifo}))
	f.Add(exported(f, tar.Header{Name: "x", Typeflag: tar.TypeReg, PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "v"}}))
	f.Add([]byte("no tar"))
	f.Fuzz(func(t *testing.T, content []byte) {
		var out bytes.Buffer
		if FromTar(bytes.NewReader(content), &out) == nil {
			read(t, out.Bytes())
		}
	})
}
