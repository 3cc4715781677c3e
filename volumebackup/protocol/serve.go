package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Handler answers one request, and returns soon after ctx ends. Its result is encoded as JSON. bytes reads what the
// client sends and writes to the client; both end when the handler returns.
type Handler func(ctx context.Context, r Request, bytes io.ReadWriter, emit func(Event)) (any, error)

// Serve is the worker's end: it greets, then answers each request from in with handle until in ends or ctx does.
// Errors of handle become error events; describe gives them their class. When in ends in the middle of a request, that
// request's ctx ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, handle Handler, describe func(error) *Error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &lineWriter{out: out}
	if err := w.write(Event{Type: TypeHello, Hello: &Hello{Protocol: Version}}, nil); err != nil {
		return err
	}
	requests := readRequests(ctx, in, w, cancel)
	for {
		select {
		case <-ctx.Done():
			return endOf(ctx)
		case r, ok := <-requests:
			if !ok {
				return endOf(ctx)
			}
			if err := w.write(serveOne(ctx, r, handle, describe, w), nil); err != nil {
				return err
			}
		}
	}
}

// endOf says why the conversation ended; the client closing its end is no error.
func endOf(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, io.EOF) {
		return cause
	}
	return nil
}

// incoming is a request with its bytes, or why the line is none.
type incoming struct {
	request Request
	bytes   *stream
	err     error
}

// serveOne answers one request.
func serveOne(ctx context.Context, in incoming, handle Handler, describe func(error) *Error, w *lineWriter) Event {
	if in.err != nil {
		return Event{Type: TypeError, Error: describe(in.err)}
	}
	stop := context.AfterFunc(ctx, func() { in.bytes.fail(asCutOff(context.Cause(ctx))) })
	defer stop()
	result, err := handle(ctx, in.request, in.bytes, func(e Event) { _ = w.write(e, nil) })
	in.bytes.finish()
	var encoded json.RawMessage
	if err == nil {
		encoded, err = json.Marshal(result)
	}
	if err != nil {
		return Event{Type: TypeError, Error: describe(err)}
	}
	return Event{Type: TypeResult, Result: encoded}
}

// asCutOff keeps the end of the client from looking like the end of its bytes.
func asCutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readRequests reads on while a request is being answered: it notices the end of in, and takes the bytes of the
// request. A read that does not return when ctx ends is left behind.
func readRequests(ctx context.Context, in io.Reader, w *lineWriter, cancel context.CancelCauseFunc) <-chan incoming {
	requests := make(chan incoming)
	go func() {
		defer close(requests)
		err := readLines(ctx, newLineReader(in), w, requests)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			cancel(io.EOF)
			return
		}
		cancel(fmt.Errorf("read request: %w", err))
	}()
	return requests
}

// readLines hands on each request, and gives its bytes to its stream.
func readLines(ctx context.Context, lines *lineReader, w *lineWriter, requests chan<- incoming) error {
	send := func(f Frame, chunk []byte) error { return w.write(Event{Type: TypeFrame, Frame: &f}, chunk) }
	var bytes *stream // of the last request
	for {
		line, err := lines.next()
		if err != nil {
			return err
		}
		said, err := decodeLine(line)
		if said.frame != nil {
			if bytes == nil {
				return errors.New("bytes come without a request")
			}
			if err := lines.frame(*said.frame, bytes); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			bytes = newStream(send)
			bytes.ended = !said.request.Sends
		}
		select {
		case requests <- incoming{said.request, bytes, err}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
