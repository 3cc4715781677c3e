//go:build linux

package store

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

const (
	tarBlock    = 512
	tarName     = 100 // bytes of a name that fit into a header
	tarEnd      = 2 * tarBlock
	tarLongName = "././@LongLink"
	tarAhead    = 32 << 10
	maxMember   = manifest.MaxPath + 64 // a path, an offset, a suffix
)

// appendMember appends the header of a member, in GNU's format. A name that fills the header's field stands in front of
// it, whole. Where the time of the file would be, the header of that name has its CRC-32: nothing else covers those
// bytes, and tar does not look there.
func appendMember(b []byte, name string, size, modified int64) []byte {
	if len(name) >= tarName {
		b = appendHeader(b, tarLongName, 'L', int64(len(name))+1, int64(crc32.ChecksumIEEE([]byte(name))))
		b = append(b, name...)
		b = append(b, make([]byte, 1+padding(int64(len(name))+1))...)
		name = name[:tarName]
	}
	return appendHeader(b, name, '0', size, modified)
}

func appendHeader(b []byte, name string, kind byte, size, modified int64) []byte {
	var h [tarBlock]byte
	copy(h[:tarName], name)
	copy(h[100:], "0000600\x000000000\x000000000\x00")
	octal(h[124:135], size)
	octal(h[136:147], min(max(modified, 0), 1<<33-1))
	copy(h[148:], "        ")
	h[156] = kind
	copy(h[257:], "ustar  \x00")
	octal(h[148:154], checksum(&h))
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

// checksum is the sum over a header whose checksum is blank.
func checksum(h *[tarBlock]byte) int64 {
	var sum int64
	for _, c := range h {
		sum += int64(c)
	}
	return sum
}

func padding(size int64) int64 { return -size & (tarBlock - 1) }

// member is one piece of content in a pack.
type member struct {
	name  string
	start int64 // of the header
	data  int64
	size  int64
	end   int64 // of the padding
}

var errNotMember = errors.New("there is no member of a tar")

type memberWalker struct {
	in     io.ReaderAt
	size   int64
	at     int64 // where the next member may begin
	buffer []byte
	first  int64 // offset of buffer
	small  bool  // one header is looked at: do not read ahead
}

// block returns the 512 bytes at an offset, reading ahead.
func (w *memberWalker) block(at int64) ([]byte, error) {
	if at+tarBlock > w.size {
		return nil, errNotMember
	}
	if at < w.first || at+tarBlock > w.first+int64(len(w.buffer)) {
		if w.buffer == nil {
			length := tarAhead
			if w.small {
				length = tarBlock
			}
			w.buffer = make([]byte, length)
		}
		w.buffer = w.buffer[:min(int64(cap(w.buffer)), w.size-at)]
		if _, err := w.in.ReadAt(w.buffer, at); err != nil {
			w.buffer = w.buffer[:0]
			return nil, noEOF(err)
		}
		w.first = at
	}
	return w.buffer[at-w.first:][:tarBlock], nil
}

func (w *memberWalker) next() (member, error) {
	for {
		if w.at >= w.size {
			return member{}, io.EOF
		}
		b, err := w.block(w.at)
		if err != nil {
			return member{}, err
		}
		if !isZero(b) {
			break
		}
		w.at += tarBlock
	}
	m := member{start: w.at}
	kind, err := w.header(&m, m.start)
	if err != nil {
		return member{}, err
	}
	if kind == 'L' {
		if err := w.longName(&m); err != nil {
			return member{}, err
		}
	} else if kind != '0' {
		return member{}, errNotMember
	}
	w.at = m.end
	return m, nil
}

// longName reads the name that the header at m announced, then the member's own header.
func (w *memberWalker) longName(m *member) error {
	if m.size < 2 || m.size > maxMember {
		return errNotMember
	}
	name := make([]byte, m.size-1)
	if _, err := w.in.ReadAt(name, m.data); err != nil {
		return noEOF(err)
	}
	kind, err := w.header(m, m.end)
	if err != nil {
		return err
	}
	if kind != '0' {
		return errNotMember
	}
	m.name = string(name)
	return nil
}

// checkLongName checks the name in front of a header whose name is full.
func checkLongName(in io.ReaderAt, header int64, name string) error {
	w := memberWalker{in: in, size: header, small: true}
	for at := header - 2*tarBlock; at >= max(packHeader, header-maxMember-2*tarBlock); at -= tarBlock {
		var m member
		kind, err := w.header(&m, at)
		if errors.Is(err, errNotMember) || err == nil && (kind != 'L' || m.end != header) {
			continue // a name has no zero bytes, and so cannot look like a header
		}
		if err != nil {
			return err
		}
		return checkNameAt(in, m, name, at)
	}
	return errors.New("the long name before it is gone")
}

// checkNameAt checks the long name at m, whose header is at an offset.
func checkNameAt(in io.ReaderAt, m member, name string, header int64) error {
	b := make([]byte, tarBlock+m.end-m.data)
	if _, err := in.ReadAt(b, header); err != nil {
		return noEOF(err)
	}
	sum, err := parseOctal(b[136:148])
	long, rest, ended := bytes.Cut(b[tarBlock:], []byte{0})
	if err != nil || !ended || !isZero(rest) || int64(len(long))+1 != m.size || int64(crc32.ChecksumIEEE(long)) != sum ||
		!bytes.HasPrefix(long, []byte(name)) {
		return errors.New("the long name before it is not what it was")
	}
	return nil
}

// header parses the header at an offset.
func (w *memberWalker) header(m *member, at int64) (byte, error) {
	b, err := w.block(at)
	if err != nil {
		return 0, err
	}
	var h [tarBlock]byte
	copy(h[:], b)
	want, err := parseOctal(h[148:156])
	if err != nil {
		return 0, errNotMember
	}
	copy(h[148:156], "        ")
	if checksum(&h) != want || string(h[257:265]) != "ustar  \x00" {
		return 0, errNotMember
	}
	size, err := parseOctal(h[124:136])
	if err != nil {
		return 0, err
	}
	m.name = string(h[:tarName])
	if i := strings.IndexByte(m.name, 0); i >= 0 {
		m.name = m.name[:i]
	}
	m.data, m.size = at+tarBlock, size
	m.end = m.data + size + padding(size)
	if m.end > w.size {
		return 0, errNotMember
	}
	return h[156], nil
}

func parseOctal(field []byte) (int64, error) {
	n, err := strconv.ParseUint(string(bytes.Trim(field, " \x00")), 8, 40)
	if err != nil {
		return 0, errNotMember
	}
	return int64(n), nil
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// noEOF keeps the end of a file from looking like the end of the members.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
