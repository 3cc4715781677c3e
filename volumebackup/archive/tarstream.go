//go:build linux

package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

const (
	// maxTarXattrs is how long the extended attributes of an entry may be in a tar: common readers refuse headers of
	// more than 1 MiB, and the path comes along.
	maxTarXattrs = 800 << 10

	// maxRecordFrame is more than what stands around a name and a value in a header.
	maxRecordFrame = 32

	// maxSegments is how many parts of a sparse file a tar lists: common readers refuse lists of more than 1 MiB.
	maxSegments = 20_000

	tarBuffer = 32 << 10
	xattrKey  = "SCHILY.xattr."
)

// isTarXattr tells whether a header can express the name of an extended attribute.
func isTarXattr(name string) bool { return !strings.ContainsAny(name, "=\x00") }

// tarStream writes entries as a tar in pax format. Sparse files are written as GNU's format 1.0, which archive/tar reads
// but does not write.
type tarStream struct {
	out      *bufio.Writer
	tar      *tar.Writer
	isSent   bool             // the first entry: it does not wait for the buffer to be full
	isSparse bool             // the file that is being written
	segments []manifest.Range // of that file: what is still to come and no hole
	size     int64            // of that file
	written  int64            // of its data
}

func newTarStream(out io.Writer) *tarStream {
	buffered := bufio.NewWriterSize(out, tarBuffer)
	return &tarStream{out: buffered, tar: tar.NewWriter(buffered)}
}

func (t *tarStream) close() error {
	if err := t.tar.Close(); err != nil {
		return err
	}
	return t.out.Flush()
}

// tarTypes are the types of entries.
var tarTypes = map[manifest.Kind]byte{
	manifest.Directory: tar.TypeDir, manifest.Regular: tar.TypeReg, manifest.Symlink: tar.TypeSymlink, manifest.FIFO: tar.TypeFifo,
	manifest.BlockDevice: tar.TypeBlock, manifest.CharacterDevice: tar.TypeChar,
}

// header begins an entry.
func (t *tarStream) header(e *manifest.Entry, name string) error {
	t.isSparse, t.segments, t.size, t.written = len(e.Holes) > 0, segmentsOf(e.Size, e.Holes), e.Size, 0
	records := map[string]string{}
	for _, a := range e.Xattrs {
		records[xattrKey+a.Name] = a.Value
	}
	if !utf8.ValidString(name) || !utf8.ValidString(e.Target) {
		records["hdrcharset"] = "BINARY"
	}
	if t.isSparse {
		return t.sparseHeader(e, name, records)
	}
	if e.Kind == manifest.Directory {
		name = strings.TrimSuffix(name, "/") + "/"
	}
	return t.tar.WriteHeader(&tar.Header{
		Format: tar.FormatPAX, Typeflag: tarTypes[e.Kind], Name: name, Linkname: e.Target, Size: e.Size, Mode: int64(e.Mode),
		Uid: int(e.UID), Gid: int(e.GID), ModTime: time.Unix(e.Modified.Sec, int64(e.Modified.Nsec)),
		Devmajor: int64(e.Major), Devminor: int64(e.Minor), PAXRecords: records,
	})
}

// link writes a further name of a file.
func (t *tarStream) link(name, first string) error {
	return t.tar.WriteHeader(&tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeLink, Name: name, Linkname: first})
}

// data writes some bytes of a file. at is the end of those before, offset where these begin.
func (t *tarStream) data(at, offset int64, content []byte) error {
	if err := t.zeros(at, offset); err != nil {
		return err
	}
	return t.each(offset, offset+int64(len(content)), func(from, to int64) error {
		return t.put(content[from-offset : to-offset])
	})
}

// endEntry ends an entry, of which the last data ended at an offset.
func (t *tarStream) endEntry(at int64) error {
	if err := t.zeros(at, t.size); err != nil {
		return err
	}
	if t.isSparse {
		if _, err := t.out.Write(make([]byte, -t.written&(tarBlock-1))); err != nil {
			return err
		}
	}
	if t.isSent {
		return nil
	}
	t.isSent = true
	return t.out.Flush()
}

// zeros writes what of a file is between two offsets and in no piece, as far as the tar has it.
func (t *tarStream) zeros(from, to int64) error {
	var zero [4096]byte
	return t.each(from, to, func(from, to int64) error {
		for at := from; at < to; at += int64(len(zero)) {
			if err := t.put(zero[:min(to-at, int64(len(zero)))]); err != nil {
				return err
			}
		}
		return nil
	})
}

// each calls f for the parts between two offsets that the tar has. Offsets never go back.
func (t *tarStream) each(from, to int64, f func(from, to int64) error) error {
	for len(t.segments) > 0 && t.segments[0].Offset < to {
		begin, end := t.segments[0].Offset, t.segments[0].Offset+t.segments[0].Length
		if max(from, begin) < min(to, end) {
			if err := f(max(from, begin), min(to, end)); err != nil {
				return err
			}
		}
		if end > to {
			return nil
		}
		t.segments = t.segments[1:]
	}
	return nil
}

func (t *tarStream) put(content []byte) error {
	t.written += int64(len(content))
	if !t.isSparse {
		_, err := t.tar.Write(content)
		return err
	}
	_, err := t.out.Write(content)
	return err
}

// segmentsOf lists the parts of a file that are no holes. If there are too many for a tar, it leaves out the shorter holes.
func segmentsOf(size int64, holes []manifest.Range) []manifest.Range {
	for least := int64(1); ; least *= 2 {
		segments := []manifest.Range{}
		at := int64(0)
		for _, h := range holes {
			if h.Length < least {
				continue
			}
			if h.Offset > at {
				segments = append(segments, manifest.Range{Offset: at, Length: h.Offset - at})
			}
			at = h.Offset + h.Length
		}
		if at < size {
			segments = append(segments, manifest.Range{Offset: at, Length: size - at})
		}
		if len(segments) <= maxSegments {
			return segments
		}
	}
}

// sparseHeader begins a sparse file: a header with what no reader must misunderstand, the usual header, and the list of the
// segments.
func (t *tarStream) sparseHeader(e *manifest.Entry, name string, records map[string]string) error {
	if err := t.tar.Flush(); err != nil {
		return err
	}
	table, stored := tableOf(e.Size, t.segments)
	maps.Copy(records, map[string]string{
		"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name, "GNU.sparse.realsize": strconv.FormatInt(e.Size, 10),
		"mtime": paxTime(e.Modified), "size": strconv.FormatInt(stored, 10),
		"uid": strconv.FormatUint(uint64(e.UID), 10), "gid": strconv.FormatUint(uint64(e.GID), 10),
	})
	var pax []byte
	for _, key := range slices.Sorted(maps.Keys(records)) {
		pax = appendRecord(pax, key, records[key])
	}
	var b []byte
	b = appendTarHeader(b, "PaxHeaders.0/sparse", 'x', int64(len(pax)), 0o644)
	b = append(b, pax...)
	b = append(b, make([]byte, -len(pax)&(tarBlock-1))...)
	b = appendTarHeader(b, "GNUSparseFile.0/sparse", tar.TypeReg, stored, int64(e.Mode))
	b = append(b, table...)
	_, err := t.out.Write(b)
	return err
}

// tableOf is the list of segments as it stands before the data, and how long both are together.
func tableOf(size int64, segments []manifest.Range) (table []byte, stored int64) {
	line := func(n int64) { table = append(strconv.AppendInt(table, n, 10), '\n') }
	line(int64(len(segments)) + 1)
	for _, s := range segments {
		line(s.Offset)
		line(s.Length)
		stored += s.Length
	}
	line(size) // an empty segment at the end, as GNU tar writes it
	line(0)
	table = append(table, make([]byte, -len(table)&(tarBlock-1))...)
	return table, stored + int64(len(table))
}

// appendRecord appends a record of an extended header: its own length in decimal, which counts itself, the key and the value.
func appendRecord(b []byte, key, value string) []byte {
	const frame = len(" =\n")
	length := len(key) + len(value) + frame
	for length != len(key)+len(value)+frame+len(strconv.Itoa(length)) {
		length = len(key) + len(value) + frame + len(strconv.Itoa(length))
	}
	b = append(strconv.AppendInt(b, int64(length), 10), ' ')
	b = append(append(append(b, key...), '='), value...)
	return append(b, '\n')
}

// paxTime is a time as seconds with a fraction.
func paxTime(at manifest.Timestamp) string {
	sec, nsec, sign := at.Sec, int64(at.Nsec), ""
	if sec < 0 && nsec > 0 {
		sec, nsec = sec+1, 1e9-nsec
	}
	if at.Sec < 0 {
		sign, sec = "-", -sec
	}
	fraction := strconv.FormatInt(1e9+nsec, 10)[1:]
	return sign + strconv.FormatInt(sec, 10) + "." + fraction
}

// appendTarHeader appends a plain header. What does not fit into it stands in the extended one.
func appendTarHeader(b []byte, name string, kind byte, size, mode int64) []byte {
	const octalSize = 1<<33 - 1
	var h [tarBlock]byte
	copy(h[:], name)
	octal(h[100:107], mode)
	octal(h[108:115], 0)
	octal(h[116:123], 0)
	octal(h[124:135], min(size, octalSize))
	octal(h[136:147], 0)
	h[156] = kind
	copy(h[257:], "ustar\x0000")
	copy(h[148:], bytes.Repeat([]byte(" "), 8))
	sum := int64(0)
	for _, c := range h {
		sum += int64(c)
	}
	octal(h[148:154], sum)
	h[154] = 0
	return append(b, h[:]...)
}

// octal fills field with the digits of n.
func octal(field []byte, n int64) {
	for i := len(field) - 1; i >= 0; i-- {
		field[i] = '0' + byte(n&7)
		n >>= 3
	}
}
