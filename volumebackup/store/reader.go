//go:build linux

package store

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

// ManifestReader decodes a manifest, and believes nothing in it: at the end it
// has checked order, checksum, counts and root.
type ManifestReader struct {
	name    string
	footer  footer
	packs   []PackID
	lost    []*DamagedError // of a head: packs that are not taken into account
	table   []byte
	zip     *zstd.Decoder
	in      *bufio.Reader
	sum     hash.Hash
	seen    countingReader
	tree    merkle
	order   order
	summary Summary
	cache   bool // what it says is only compared with: the checksum is enough, nobody relies on the root
	content bytes.Buffer
	locator bytes.Buffer
	close   func()
}

// countingReader counts and hashes what it hands on.
type countingReader struct {
	in  io.Reader
	sum hash.Hash
	n   uint64
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.sum.Write(b[:n])
	r.n += uint64(n)
	return n, err
}

// newManifestReader reads a manifest of size bytes. Its name is for errors.
func newManifestReader(in io.ReaderAt, size int64, name string, packs *packTable) (*ManifestReader, error) {
	r := &ManifestReader{name: name, sum: sha256.New(), close: func() {}}
	if err := r.open(in, size, packs); err != nil {
		return nil, r.damaged(err)
	}
	return r, nil
}

func (r *ManifestReader) open(in io.ReaderAt, size int64, packs *packTable) error {
	header := make([]byte, len(manifestHeader))
	if _, err := in.ReadAt(header, 0); err != nil {
		return err
	}
	if string(header) != manifestHeader {
		return errors.New("it does not begin like a manifest")
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
	r.seen = countingReader{sum: r.sum}
	body := io.NewSectionReader(in, int64(len(header)), bodyEnd-int64(len(header)))
	r.zip, err = zstd.NewReader(bufio.NewReaderSize(body, bodyBuffer), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(2*bodyWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	r.seen.in = r.zip
	r.in = bufio.NewReaderSize(&r.seen, bodyBuffer)
	return nil
}

func parsePacks(table []byte, packs *packTable) ([]PackID, error) {
	d := decoder{rest: table}
	var ids []PackID
	for d.err == nil && len(d.rest) > 0 {
		name := d.text(2 * maxComponent)
		if d.err != nil {
			break
		}
		if err := checkPackName(name); err != nil {
			return nil, err
		}
		ids = append(ids, packs.id(name))
	}
	return ids, d.err
}

// Packs lists the packs that the manifest refers to.
func (r *ManifestReader) Packs() []PackID { return r.packs }

// LostPacks tells of the packs that a head names and that are not what they were.
func (r *ManifestReader) LostPacks() []*DamagedError { return r.lost }

// Summary is what the footer says; it is only known to be true after the last entry.
func (r *ManifestReader) Summary() Summary { return r.footer.Summary }

// Next returns the next entry, and io.EOF after the last one if everything was
// as it should be.
func (r *ManifestReader) Next() (*Entry, error) {
	content, err := r.field(&r.content)
	if errors.Is(err, io.EOF) {
		if err := r.finish(); err != nil {
			return nil, r.damaged(err)
		}
		return nil, io.EOF
	}
	if err != nil {
		return nil, r.damaged(err)
	}
	e, err := r.entry(content)
	if err != nil {
		return nil, r.damaged(err)
	}
	return e, nil
}

// Each hands every entry that is left to visit, whose error ends it. Without one,
// everything was as it should be.
func (r *ManifestReader) Each(visit func(*Entry) error) error {
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(e); err != nil {
			return err
		}
	}
}

// eachLocation hands every place in a pack that the rest of the manifest names to
// visit.
func (r *ManifestReader) eachLocation(visit func(Location)) error {
	return r.Each(func(e *Entry) error {
		for i := range e.Pieces {
			visit(e.Pieces[i].At)
		}
		return nil
	})
}

func (r *ManifestReader) entry(content []byte) (*Entry, error) {
	e, err := decodeContent(content)
	if err != nil {
		return nil, err
	}
	if err := r.order.check(e); err != nil {
		return nil, err
	}
	if !r.cache {
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
func (r *ManifestReader) field(buffer *bytes.Buffer) ([]byte, error) {
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

func (r *ManifestReader) finish() error {
	r.summary.Root = r.footer.Root
	if !r.cache {
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

func (r *ManifestReader) damaged(err error) error {
	return &DamagedError{Pack: r.name, Offset: -1, Reason: err.Error()}
}

// Close frees what the reader holds.
func (r *ManifestReader) Close() {
	if r.zip != nil {
		r.zip.Close()
	}
	r.close()
}

// noEOF keeps the end of a file from looking like the end of the entries.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
