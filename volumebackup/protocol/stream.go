package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// Window is how many bytes a sender may have out that the reader has not taken.
	Window = 256 << 10

	// MaxChunk is how many bytes follow one line at most.
	MaxChunk = 32 << 10

	// ackAfter is how many bytes a reader takes before it says so. It is far less than a window, so that the sender
	// can go on meanwhile.
	ackAfter = Window / 4
)

// Frame is about the bytes of a request. Exactly one of its fields is set.
type Frame struct {
	Length int  `json:"length,omitempty"` // this many bytes follow the line
	Taken  int  `json:"taken,omitempty"`  // this many more bytes were read
	End    bool `json:"end,omitempty"`    // no more bytes come
}

func (f Frame) validate() error {
	chunk := f.Length > 0 && f.Length <= MaxChunk && f.Taken == 0 && !f.End
	taken := f.Taken > 0 && f.Taken <= Window && f.Length == 0 && !f.End
	end := f.End && f.Length == 0 && f.Taken == 0
	if !chunk && !taken && !end {
		return fmt.Errorf("frame %+v is impossible", f)
	}
	return nil
}

// errOver means that a request is over, and its bytes with it.
var errOver = errors.New("the request is over")

// stream carries the bytes of one request, in both directions. Read gives the bytes that the other side wrote; Write
// waits while the other side has not taken a window of bytes. Both end with the request.
type stream struct {
	send func(Frame, []byte) error

	sending sync.Mutex // held while a frame is written
	mu      sync.Mutex
	changed sync.Cond // of mu: something below changed
	inbox   bytes.Buffer
	ended   bool  // the other side sends no more
	untold  int   // bytes that were read, without telling the other side yet
	credit  int   // bytes that may be sent now
	over    error // why neither direction goes on
}

func newStream(send func(Frame, []byte) error) *stream {
	s := &stream{send: send, credit: Window}
	s.changed.L = &s.mu
	return s
}

// Read reads what the other side wrote, and io.EOF after its end.
func (s *stream) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, taken, err := s.take(b)
	if taken > 0 {
		if err := s.sendFrame(Frame{Taken: taken}, nil); err != nil {
			return n, err
		}
	}
	return n, err
}

// take moves bytes from the inbox to b, and says how many the other side is to be told of now.
func (s *stream) take(b []byte) (n, taken int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.over == nil && s.inbox.Len() == 0 && !s.ended {
		s.changed.Wait()
	}
	if s.over != nil {
		return 0, 0, s.over
	}
	if s.inbox.Len() == 0 {
		return 0, 0, io.EOF
	}
	n, err = s.inbox.Read(b)
	if s.untold += n; s.untold >= ackAfter && !s.ended {
		taken, s.untold = s.untold, 0
	}
	return n, taken, err
}

// Write sends bytes to the other side, in chunks, as the window allows.
func (s *stream) Write(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := s.reserve(min(len(b)-written, MaxChunk))
		if err != nil {
			return written, err
		}
		if err := s.sendFrame(Frame{Length: n}, b[written:written+n]); err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// end tells the other side that no more bytes come.
func (s *stream) end() error { return s.sendFrame(Frame{End: true}, nil) }

// reserve waits until some of the wanted bytes may be sent.
func (s *stream) reserve(want int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.over == nil && s.credit == 0 {
		s.changed.Wait()
	}
	if s.over != nil {
		return 0, s.over
	}
	n := min(want, s.credit)
	s.credit -= n
	return n, nil
}

func (s *stream) sendFrame(f Frame, chunk []byte) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over != nil {
		return over
	}
	return s.send(f, chunk)
}

// receive takes a frame of the other side. It never waits. What comes after the request is over is dropped.
func (s *stream) receive(f Frame, chunk []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	switch {
	case s.over != nil:
	case f.Taken > 0:
		if f.Taken > Window-s.credit {
			return errors.New("more bytes were taken than sent")
		}
		s.credit += f.Taken
	case s.ended:
		return errors.New("bytes come after their end")
	case f.End:
		s.ended = true
	case s.inbox.Len()+s.untold+len(chunk) > Window:
		return errors.New("more bytes come than the window allows")
	default:
		s.inbox.Write(chunk)
	}
	return nil
}

// endInput lets Read return what has come, and then io.EOF.
func (s *stream) endInput() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.changed.Broadcast()
}

// fail ends both directions at once.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.over = err
	}
	s.inbox = bytes.Buffer{}
	s.changed.Broadcast()
}

// finish ends both directions when the request is over. After it no frame of the request is sent any more.
func (s *stream) finish() {
	s.fail(errOver)
	s.sending.Lock() // waits for the one that is being written
	defer s.sending.Unlock()
}
