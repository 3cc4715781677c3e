package manifest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	// bodyBuffer is how much of the body is compressed at a time.
	bodyBuffer = 128 << 10

	// bodyWindow bounds the memory that a reader of manifests needs.
	bodyWindow = 1 << 20
)

// Writer encodes a manifest. Entries come in the order of the format.
type Writer struct {
	out     io.Writer
	packs   *PackTable
	places  map[PackID]uint64
	names   []byte // the packs, encoded
	zip     *zstd.Encoder
	sum     hash.Hash // of what out gets
	tree    merkle
	order   order
	summary Summary
	length  uint64
	body    []byte // not yet compressed
	content []byte
	locator []byte
}

// NewWriter begins a manifest. packs knows the packs that its entries name.
func NewWriter(out io.Writer, packs *PackTable) (*Writer, error) {
	if _, err := io.WriteString(out, manifestHeader); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	sum := sha256.New()
	zip, err := zstd.NewWriter(io.MultiWriter(out, sum), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(bodyWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("compress manifest: %w", err)
	}
	return &Writer{
		out: out, packs: packs, places: map[PackID]uint64{}, zip: zip, sum: sum,
		body: make([]byte, 0, 2*bodyBuffer),
	}, nil
}

// Append adds an entry. It refuses one that the format cannot hold with ErrUnfit, and then changes nothing.
func (w *Writer) Append(e *Entry) error {
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

func (w *Writer) flush() error {
	w.length += uint64(len(w.body))
	if _, err := w.zip.Write(w.body); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	w.body = w.body[:0]
	return nil
}

// place adds a pack to the table when it first occurs.
func (w *Writer) place(id PackID) uint64 {
	if id == 0 {
		return 0
	}
	at, ok := w.places[id]
	if !ok {
		at = uint64(len(w.places)) + 1
		w.places[id] = at
		w.names = appendText(w.names, w.packs.Name(id))
	}
	return at
}

// Packs lists the packs that the entries so far refer to.
func (w *Writer) Packs() []PackID { return slices.Collect(maps.Keys(w.places)) }

// Finish writes what is left of the body, the packs and the footer.
func (w *Writer) Finish() (Summary, error) {
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
