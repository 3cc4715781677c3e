//go:build linux

package archive

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// asTar writes one file of which the pieces hold the content, and reads the tar.
func asTar(t *testing.T, e *manifest.Entry, content []byte) (h *tar.Header, read []byte, size int) {
	t.Helper()
	var out bytes.Buffer
	w := newTarStream(&out)
	assert.NilError(t, w.header(e, "name"))
	at := int64(0)
	for _, p := range e.Pieces {
		assert.NilError(t, w.data(at, p.Offset, content[p.Offset:p.End()]))
		at = p.End()
	}
	assert.NilError(t, w.endEntry(at))
	assert.NilError(t, w.header(&manifest.Entry{Kind: manifest.Directory}, "next"))
	assert.NilError(t, w.endEntry(0))
	assert.NilError(t, w.close())
	size = out.Len()
	r := tar.NewReader(&out)
	h, err := r.Next()
	assert.NilError(t, err)
	read, err = io.ReadAll(r)
	assert.NilError(t, err)
	next, err := r.Next()
	assert.NilError(t, err)
	assert.Equal(t, next.Name, "next/")
	return h, read, size
}

func TestATarHasWhatIsNoHole(t *testing.T) {
	const size = 1 << 20
	content := make([]byte, size)
	copy(content[100_000:], "middle")
	copy(content[size-3:], "end")
	pieces := []manifest.Piece{{Offset: 65536, Length: 65536}, {Offset: size - 65536, Length: 65536}}
	e := &manifest.Entry{
		Kind: manifest.Regular, Size: size, Pieces: pieces,
		Holes:      []manifest.Range{{Offset: 0, Length: 98304}, {Offset: 102400, Length: size - 4096 - 102400}},
		Attributes: manifest.Attributes{Mode: 0o4751, UID: 4_000_000_000, GID: 7, Modified: manifest.Timestamp{Sec: -2, Nsec: 250_000_000}, Xattrs: []manifest.Xattr{{Name: "user.x", Value: "\x00="}}},
	}
	h, read, stored := asTar(t, e, content)
	assert.Assert(t, bytes.Equal(read, content))
	assert.Assert(t, stored < 20_000, "%d", stored)
	assert.Equal(t, h.Name, "name")
	assert.Equal(t, h.Mode, int64(0o4751))
	assert.Equal(t, h.Uid, 4_000_000_000)
	assert.Equal(t, h.Gid, 7)
	assert.Assert(t, h.ModTime.Equal(time.Unix(-2, 250_000_000)), "%v", h.ModTime)
	assert.Equal(t, h.PAXRecords[xattrKey+"user.x"], "\x00=")
}

func TestAFileOfTooManyHolesHasFewerInATar(t *testing.T) {
	const page, count = 4096, maxSegments + 5000
	content := make([]byte, 2*page*count)
	e := &manifest.Entry{Kind: manifest.Regular, Size: int64(len(content))}
	for n := range count {
		at := 2 * page * n
		content[at] = byte(n) | 1
		length := page
		if n%2 == 0 {
			length = page / 2
			e.Holes = append(e.Holes, manifest.Range{Offset: int64(at + page + page/2), Length: int64(length)})
		} else {
			e.Holes = append(e.Holes, manifest.Range{Offset: int64(at + page), Length: int64(length)})
		}
	}
	for at := 0; at < len(content); at += 1 << 20 {
		e.Pieces = append(e.Pieces, manifest.Piece{Offset: int64(at), Length: uint32(min(1<<20, len(content)-at))})
	}
	assert.Equal(t, len(segmentsOf(e.Size, e.Holes)), count/2)
	_, read, stored := asTar(t, e, content)
	assert.Assert(t, bytes.Equal(read, content))
	assert.Assert(t, stored < len(content)*4/5)
}

func TestXattrsThatNoTarHoldsAreNamed(t *testing.T) {
	var warned []string
	x := &extraction{warner: warner{reporter: warnings(func(message string) { warned = append(warned, message) })}}
	e := &manifest.Entry{}
	for _, name := range []string{"user.a", "user.b=c", "user.d"} {
		e.Xattrs = append(e.Xattrs, manifest.Xattr{Name: name, Value: "v"})
	}
	for name := range strings.SplitSeq("efghijklmnopqrs", "") {
		e.Xattrs = append(e.Xattrs, manifest.Xattr{Name: "user." + name, Value: strings.Repeat("v", 64<<10)})
	}
	x.dropXattrs(e)
	assert.Equal(t, len(e.Xattrs), 2+12)
	assert.Equal(t, len(warned), 1+3)
	assert.Equal(t, warned[0], `xattr "user.b=c" is left out: a tar cannot hold it`)
}

// warnings is a reporter.
type warnings func(message string)

func (w warnings) Warn(_ int, _, message string) { w(message) }
