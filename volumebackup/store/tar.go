//go:build linux

package store

import (
	"bytes"
	"errors"
	"fmt"
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

// appendMember appends the header of a member, in GNU's format.
func appendMember(b []byte, name string, size, modified int64) []byte {
	if len(name) > tarName {
		b = appendHeader(b, tarLongName, 'L', int64(len(name))+1, 0)
		b = append(b, name...)
		b = append(b, make([]byte, 1+padding(int64(len(name))+1))...)
		name = name[:tarName]
	}
	return appendHeader(b, name, '0', size, modified)
}

// memberLength is what appendMember appends for a name.
func memberLength(name int) int64 {
	if name <= tarName {
		return tarBlock
	}
	return 2*tarBlock + int64(name) + 1 + padding(int64(name)+1)
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

// walkMembers visits each member of a pack in turn. Freed parts read as zeros and are skipped.
func walkMembers(in io.ReaderAt, size int64, visit func(member) error) error {
	w := memberWalker{in: in, size: size, at: packHeader}
	for {
		m, err := w.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("offset %d: %w", w.at, err)
		}
		if err := visit(m); err != nil {
			return err
		}
	}
}

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
