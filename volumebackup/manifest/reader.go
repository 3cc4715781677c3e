package manifest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Reader decodes a manifest, and believes nothing in it: at the end it has checked order, checksum, counts and
// root.
type Reader struct {
	footer  footer
	packs   []PackID
	table   []byte
	zip     *zstd.Decoder
	in      *bufio.Reader
	sum     hash.Hash // of the body as it stands in the file: no bit of it may differ, though zstd ignores some
	seen    countingReader
	tree    *merkle // nil: the caller does not rely on the root
	order   order
	summary Summary
	content bytes.Buffer
	locator bytes.Buffer
}

// countingReader counts what it hands on.
type countingReader struct {
	in io.Reader
	n  uint64
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.n += uint64(n)
	return n, err
}

// NewReader opens a manifest of size bytes, and enters the packs that it names into packs.
func NewReader(in io.ReaderAt, size int64, packs *PackTable) (*Reader, error) {
	return newReader(in, size, packs, &merkle{})
}

// NewCacheReader opens a manifest whose entries are only compared with a volume. Its checksum is enough for that:
// the root, which takes another SHA-256 of everything, is not checked.
func NewCacheReader(in io.ReaderAt, size int64, packs *PackTable) (*Reader, error) {
	return newReader(in, size, packs, nil)
}

func newReader(in io.ReaderAt, size int64, packs *PackTable, tree *merkle) (*Reader, error) {
	r := &Reader{sum: sha256.New(), tree: tree}
	if err := r.open(in, size, packs); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) open(in io.ReaderAt, size int64, packs *PackTable) error {
	header := make([]byte, len(manifestHeader))
	if _, err := in.ReadAt(header, 0); err != nil {
		return err
	}
	if string(header) != manifestHeader {
		return errors.New("it does not begin like a manifest")
	}
	if size < int64(len(header)+footerLength) {
		return io.ErrUnexpectedEOF
	}
	tail := make([]byte, footerLength)
	if _, err := in.ReadAt(tail, size-int64(footerLength)); err != nil {
		return err
	}
	f, err := parseFooter(tail)
	if err != nil {
		return err
	}
	r.footer = f
	bodyEnd := size - int64(footerLength) - int64(f.packs)
	if bodyEnd < int64(len(header)) || f.packs > maxPackNames {
		return errors.New("the footer does not fit")
	}
	r.table = make([]byte, f.packs)
	if _, err := in.ReadAt(r.table, bodyEnd); err != nil {
		return err
	}
	if r.packs, err = parsePacks(r.table, packs); err != nil {
		return err
	}
	body := io.TeeReader(io.NewSectionReader(in, int64(len(header)), bodyEnd-int64(len(header))), r.sum)
	r.zip, err = zstd.NewReader(bufio.NewReaderSize(body, bodyBuffer), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(2*bodyWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	r.seen = countingReader{in: r.zip}
	r.in = bufio.NewReaderSize(&r.seen, bodyBuffer)
	return nil
}

func parsePacks(table []byte, packs *PackTable) ([]PackID, error) {
	d := decoder{rest: table}
	var ids []PackID
	for d.err == nil && len(d.rest) > 0 {
		name := d.text(2 * maxComponent)
		if d.err != nil {
			break
		}
		if err := CheckPackName(name); err != nil {
			return nil, err
		}
		ids = append(ids, packs.ID(name))
	}
	return ids, d.err
}

// Packs lists the packs that the manifest refers to.
func (r *Reader) Packs() []PackID { return r.packs }

// DropPack makes the reader ignore a pack: a piece in it has no location, and its file is unsettled.
func (r *Reader) DropPack(id PackID) {
	for i := range r.packs {
		if r.packs[i] == id {
			r.packs[i] = 0
		}
	}
}

// Summary is what the footer says. Only after the last entry it is known to be true.
func (r *Reader) Summary() Summary { return r.footer.Summary }

// Next returns the next entry. After the last one it returns io.EOF if the whole manifest was as it should be.
func (r *Reader) Next() (*Entry, error) {
	content, err := r.field(&r.content)
	if errors.Is(err, io.EOF) {
		if err := r.finish(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	return r.entry(content)
}

func (r *Reader) entry(content []byte) (*Entry, error) {
	e, err := decodeContent(content)
	if err != nil {
		return nil, err
	}
	if err := r.order.check(e); err != nil {
		return nil, err
	}
	if r.tree != nil {
		r.tree.add(content)
	}
	r.summary.Entries++
	r.summary.Bytes += e.Size
	locator, err := r.field(&r.locator)
	if err != nil {
		return nil, noEOF(err)
	}
	if err := decodeLocator(locator, e, r.packs); err != nil {
		return nil, err
	}
	for i := range e.Pieces {
		if e.Pieces[i].At.Pack == 0 {
			e.Cached.Unsettled = true // read the file again rather than refer to what is gone
		}
	}
	return e, nil
}

// field reads a length and as many bytes. They are valid until the next call with the same buffer.
func (r *Reader) field(buffer *bytes.Buffer) ([]byte, error) {
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return nil, err
	}
	if n > maxRecord {
		return nil, fmt.Errorf("a record of %d bytes", n)
	}
	buffer.Reset()
	if n <= uint64(r.in.Size()) {
		peeked, err := r.in.Peek(int(n))
		if err != nil {
			return nil, noEOF(err)
		}
		buffer.Write(peeked)
		_, err = r.in.Discard(int(n))
		return buffer.Bytes(), err
	}
	if _, err := io.CopyN(buffer, r.in, int64(n)); err != nil { // grows as bytes come: the length may lie
		return nil, noEOF(err)
	}
	return buffer.Bytes(), nil
}

func (r *Reader) finish() error {
	r.summary.Root = r.footer.Root
	if r.tree != nil {
		r.summary.Root = r.tree.root()
	}
	r.sum.Write(r.table)
	var sum Sum
	r.sum.Sum(sum[:0])
	switch {
	case r.summary.Root != r.footer.Root:
		return errors.New("the root is not that of the entries")
	case r.summary != r.footer.Summary || r.seen.n != r.footer.body:
		return errors.New("the counts are wrong")
	case sum != r.footer.checksum:
		return errors.New("the checksum is wrong")
	}
	return nil
}

// Close frees the memory of the decompressor. It does not close what is read from.
func (r *Reader) Close() { r.zip.Close() }

// noEOF keeps the end of a file from looking like the end of the entries.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
