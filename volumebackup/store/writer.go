//go:build linux

package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	manifestHeader = "cua-manifest 1\n"
	manifestMagic  = "cuaman1\n"
	footerLength   = 2*sha256.Size + 3*8 + 4 + len(manifestMagic)

	// bodyBuffer is how much of the body is hashed and compressed at a time.
	bodyBuffer = 128 << 10

	// bodyWindow bounds what a reader of manifests needs.
	bodyWindow = 1 << 20
)

// Summary says what a manifest describes.
type Summary struct {
	Root    Sum
	Entries int64
	Bytes   int64 // sizes of all files
}

// ManifestWriter encodes a manifest. Entries come in the order of the format.
type ManifestWriter struct {
	out     io.Writer
	packs   *packTable
	places  map[PackID]uint64
	names   []byte // the packs, encoded
	zip     *zstd.Encoder
	sum     hash.Hash
	tree    merkle
	order   order
	summary Summary
	length  uint64
	body    []byte // not yet hashed and compressed
	content []byte
	locator []byte
}

func newManifestWriter(out io.Writer, packs *packTable) (*ManifestWriter, error) {
	if _, err := io.WriteString(out, manifestHeader); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	zip, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(bodyWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("compress manifest: %w", err)
	}
	return &ManifestWriter{
		out: out, packs: packs, places: map[PackID]uint64{}, zip: zip, sum: sha256.New(),
		body: make([]byte, 0, 2*bodyBuffer),
	}, nil
}

// Append adds an entry. One that the format cannot hold is refused with ErrUnfit, and
// changes nothing.
func (w *ManifestWriter) Append(e *Entry) error {
	err := check(e)
	if err == nil && e.Path != "" {
		err = checkPath(e.Path)
	}
	if err != nil {
		return fmt.Errorf("write manifest: %w: %w", ErrUnfit, err)
	}
	if err := w.order.check(e); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	w.content = appendContent(w.content[:0], e)
	w.locator = appendLocator(w.locator[:0], e, w.place)
	if len(w.content) > maxRecord || len(w.locator) > maxRecord || len(w.names) > maxPackNames {
		return fmt.Errorf("write manifest: %q takes a record of %d bytes", e.Path, len(w.content)+len(w.locator))
	}
	w.tree.add(w.content)
	w.summary.Entries++
	w.summary.Bytes += e.Size
	w.body = binary.AppendUvarint(w.body, uint64(len(w.content)))
	w.body = append(w.body, w.content...)
	w.body = binary.AppendUvarint(w.body, uint64(len(w.locator)))
	w.body = append(w.body, w.locator...)
	if len(w.body) < bodyBuffer {
		return nil
	}
	return w.flush()
}

func (w *ManifestWriter) flush() error {
	w.sum.Write(w.body)
	w.length += uint64(len(w.body))
	if _, err := w.zip.Write(w.body); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	w.body = w.body[:0]
	return nil
}

// place adds a pack to the table when it first occurs.
func (w *ManifestWriter) place(id PackID) uint64 {
	if id == 0 {
		return 0
	}
	at, ok := w.places[id]
	if !ok {
		at = uint64(len(w.places)) + 1
		w.places[id] = at
		w.names = appendText(w.names, w.packs.name(id))
	}
	return at
}

// finish writes what is pending and the footer. It does not sync.
func (w *ManifestWriter) finish() (Summary, error) {
	if err := w.flush(); err != nil {
		return Summary{}, err
	}
	if err := w.zip.Close(); err != nil {
		return Summary{}, fmt.Errorf("write manifest: %w", err)
	}
	w.sum.Write(w.names)
	w.summary.Root = w.tree.root()
	f := footer{Summary: w.summary, body: w.length, packs: uint32(len(w.names))}
	w.sum.Sum(f.checksum[:0])
	if _, err := w.out.Write(f.append(w.names)); err != nil {
		return Summary{}, fmt.Errorf("write manifest: %w", err)
	}
	return w.summary, nil
}

// footer is the end of a manifest.
type footer struct {
	Summary
	checksum Sum
	body     uint64
	packs    uint32
}

func (f *footer) append(b []byte) []byte {
	b = append(b, f.Root[:]...)
	b = append(b, f.checksum[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(f.Entries))
	b = binary.BigEndian.AppendUint64(b, uint64(f.Bytes))
	b = binary.BigEndian.AppendUint64(b, f.body)
	b = binary.BigEndian.AppendUint32(b, f.packs)
	return append(b, manifestMagic...)
}

func parseFooter(b []byte) (footer, error) {
	var f footer
	if len(b) != footerLength || string(b[footerLength-len(manifestMagic):]) != manifestMagic {
		return f, fmt.Errorf("the footer is not one")
	}
	b = b[copy(f.Root[:], b):]
	b = b[copy(f.checksum[:], b):]
	f.Entries = int64(binary.BigEndian.Uint64(b))
	f.Bytes = int64(binary.BigEndian.Uint64(b[8:]))
	f.body = binary.BigEndian.Uint64(b[16:])
	f.packs = binary.BigEndian.Uint32(b[24:])
	return f, nil
}
