package extract

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

func TestEntriesOfAnExport(t *testing.T) {
	var in bytes.Buffer
	w := tar.NewWriter(&in)
	for _, h := range []tar.Header{
		{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "etc/conf", Typeflag: tar.TypeReg, Mode: 0o4640, Uid: 1, Gid: 2, Size: 4, ModTime: time.Unix(100, 0), PAXRecords: map[string]string{"SCHILY.xattr.user.x": "y"}},
		{Name: "etc/hard", Typeflag: tar.TypeLink, Linkname: "./etc/conf"},
		{Name: "etc/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/conf"},
		{Name: "etc/hosts", Typeflag: tar.TypeReg}, // the engine's own
		{Name: "../new\nline", Typeflag: tar.TypeFifo},
	} {
		assert.NilError(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, "text"[:h.Size])
		assert.NilError(t, err)
	}
	assert.NilError(t, w.Close())
	for detail, sum := range map[archives.Detail]string{archives.Listed: "", archives.Summed: fmt.Sprintf("%x", sha256.Sum256([]byte("text")))} {
		var got []string
		err := eachEntry(bytes.NewReader(in.Bytes()), detail, func(e volumebackup.Entry) {
			got = append(got, fmt.Sprintf("%s %q %o %d:%d %d %d %q %v %s", e.Kind, string(e.Path), e.Mode, e.UID, e.GID, e.Size, e.Modified.Unix(), string(e.Target), e.Xattrs, e.SHA256))
		})
		assert.NilError(t, err)
		assert.DeepEqual(t, got, []string{
			`d "etc" 755 0:0 0 0 "" [] `,
			`f "etc/conf" 4640 1:2 4 100 "" [user.x] ` + sum,
			`h "etc/hard" 0 0:0 0 0 "etc/conf" [] `,
			`l "etc/link" 0 0:0 0 0 "/etc/conf" [] `,
			`p "new\nline" 0 0:0 0 0 "" [] `,
		})
	}
	err := eachEntry(bytes.NewReader(in.Bytes()[:700]), archives.Summed, func(volumebackup.Entry) {})
	assert.ErrorContains(t, err, "EOF")
}
