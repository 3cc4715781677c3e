package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// MaxLine is the longest line either side accepts, in bytes.
const MaxLine = 16 << 20

// lineReader reads lines, and the bytes between them.
type lineReader struct {
	in    *bufio.Reader
	line  []byte
	chunk []byte
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{in: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line, which is valid until the next call. A line without an end is none: whoever wrote it is
// gone.
func (r *lineReader) next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.line)+len(part) > MaxLine {
			return nil, fmt.Errorf("a line of more than %d bytes", MaxLine)
		}
		if err == nil && len(r.line) == 0 {
			return part, nil
		}
		r.line = append(r.line, part...)
		if err == nil {
			return r.line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// frame hands a frame, and the bytes that follow its line, to the stream that they belong to.
func (r *lineReader) frame(f Frame, to *stream) error {
	if err := f.validate(); err != nil {
		return err
	}
	r.chunk = slices.Grow(r.chunk[:0], f.Length)[:f.Length]
	if _, err := io.ReadFull(r.in, r.chunk); err != nil {
		return err
	}
	return to.receive(f, r.chunk)
}

// lineWriter writes lines for several goroutines. After an error it stays silent.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

// write writes a value as a line, and the bytes that follow it.
func (w *lineWriter) write(value any, chunk []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = writeLine(w.out, value, chunk)
	}
	return w.err
}

func writeLine(w io.Writer, value any, chunk []byte) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if line.Len() > MaxLine {
		return fmt.Errorf("message of %d bytes is too long", line.Len())
	}
	line.Write(chunk)
	if _, err := w.Write(line.Bytes()); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}
