package extract

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// What is found behind a symlink has the name that was asked for, and everything else that it had.
func TestRenamed(t *testing.T) {
	long := strings.Repeat("long/", 60)
	for name, test := range map[string]struct {
		from, to   string
		have, want []string
	}{
		"a file":              {"file", "other", []string{"file"}, []string{"other"}},
		"a directory":         {".", "dir", []string{"./", "./a", "./b/", "b/c -> ./a"}, []string{"dir/", "dir/a", "dir/b/", "dir/b/c -> dir/a"}},
		"without dots":        {".", "dir", []string{"a", "b -> a"}, []string{"dir/a", "dir/b -> dir/a"}},
		"a hidden file":       {".", "dir", []string{".hidden", "..two"}, []string{"dir/.hidden", "dir/..two"}},
		"a longer one":        {".", "dir", []string{long + "x"}, []string{"dir/" + long + "x"}},
		"one begins the same": {"file", "other", []string{"filex"}, []string{"filex"}},
	} {
		t.Run(name, func(t *testing.T) {
			var in, out bytes.Buffer
			w := tar.NewWriter(&in)
			for _, have := range test.have {
				h := &tar.Header{Name: have, Typeflag: tar.TypeReg, Size: 4, ModTime: time.Unix(1, 2), Format: tar.FormatPAX, PAXRecords: map[string]string{"SCHILY.xattr.user.x": "\x00y"}}
				if at, target, isLink := strings.Cut(have, " -> "); isLink {
					h.Name, h.Linkname, h.Typeflag, h.Size = at, target, tar.TypeLink, 0
				} else if strings.HasSuffix(have, "/") {
					h.Typeflag, h.Size = tar.TypeDir, 0
				}
				assert.NilError(t, w.WriteHeader(h))
				_, err := io.WriteString(w, "text"[:h.Size])
				assert.NilError(t, err)
			}
			assert.NilError(t, w.Close())
			assert.NilError(t, renamed(&in, test.from, test.to, &out))
			var got []string
			for r := tar.NewReader(&out); ; {
				h, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				assert.NilError(t, err)
				assert.Equal(t, h.PAXRecords["SCHILY.xattr.user.x"], "\x00y")
				assert.Assert(t, h.ModTime.Equal(time.Unix(1, 2)))
				content, err := io.ReadAll(r)
				assert.NilError(t, err)
				assert.Equal(t, string(content), "text"[:h.Size])
				if h.Linkname != "" {
					h.Name += " -> " + h.Linkname
				}
				got = append(got, h.Name)
			}
			assert.DeepEqual(t, got, test.want)
		})
	}
}
