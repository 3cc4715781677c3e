package protocol

import (
	"errors"
	"io"
	"sync"
)

// Streams are the bytes that go along with a call.
type Streams struct {
	// In is what the worker reads; nil: nothing. A Read that has not returned when the call ends is left behind.
	In io.Reader
	// Out is where the worker's bytes go; nil: the worker must not send any. A Write has to return for the call to end.
	Out io.Writer
}

// copying copies between a stream and the caller's reader and writer while a call lasts.
type copying struct {
	client    *Client
	bytes     *stream
	receiving sync.WaitGroup

	mu     sync.Mutex
	over   bool  // the call has ended
	failed error // of the caller's reader or writer
}

func (c *Client) copy(bytes *stream, s Streams) *copying {
	k := &copying{client: c, bytes: bytes}
	if s.In != nil {
		go func() { k.report(bytes.readFrom(s.In)) }()
	}
	if s.Out != nil {
		k.receiving.Go(func() {
			_, err := io.Copy(s.Out, bytes)
			k.report(err)
		})
	}
	return k
}

// readFrom sends all that a reader gives.
func (s *stream) readFrom(in io.Reader) error {
	_, err := io.CopyBuffer(writerOnly{s}, in, make([]byte, MaxChunk))
	if err != nil {
		return err
	}
	return s.end()
}

// writerOnly keeps io.Copy to the buffer that it is given.
type writerOnly struct{ io.Writer }

// report takes the error of a reader or writer, which ends the conversation.
func (k *copying) report(err error) {
	if err == nil || errors.Is(err, errOver) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over { // In was left behind, and nobody waits for it
		return
	}
	if k.failed == nil {
		k.failed = err
	}
	k.bytes.fail(err)
	_ = k.client.Close()
}

// finish waits until all that the worker has sent is written, and stops sending. It returns the error of the call.
func (k *copying) finish(err error) error {
	if _, answered := errors.AsType[*Error](err); err != nil && !answered {
		k.bytes.fail(err)
	} else {
		k.bytes.endInput()
	}
	k.receiving.Wait()
	k.bytes.finish()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	if k.failed != nil {
		return k.failed
	}
	return err
}
