package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Handler answers one request. It returns soon after ctx ends.
type Handler func(ctx context.Context, r Request, emit func(Event)) (Result, error)

// Serve is the worker's end: it greets, then answers each request from in with
// handle until in ends or ctx does. Errors of handle become error events; describe gives them their class.
// When in ends in the middle of a request, that request's ctx ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, handle Handler, describe func(error) *Error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &eventWriter{out: out}
	if err := w.write(Event{Type: TypeHello, Hello: &Hello{Protocol: Version}}); err != nil {
		return err
	}
	requests := readRequests(ctx, in, cancel)
	for {
		select {
		case <-ctx.Done():
			return endOf(ctx)
		case r, ok := <-requests:
			if !ok {
				return endOf(ctx)
			}
			if err := w.write(serveOne(ctx, r, handle, describe, w)); err != nil {
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

// incoming is a request, or why the line is none.
type incoming struct {
	request Request
	err     error
}

// serveOne answers one request.
func serveOne(ctx context.Context, in incoming, handle Handler, describe func(error) *Error, w *eventWriter) Event {
	if in.err != nil {
		return Event{Type: TypeError, Error: describe(in.err)}
	}
	result, err := handle(ctx, in.request, func(e Event) { _ = w.write(e) })
	if err != nil {
		return Event{Type: TypeError, Error: describe(err)}
	}
	return Event{Type: TypeResult, Result: &result}
}

// readRequests reads ahead, so that the end of in is noticed while a request is
// being answered. A read that does not return when ctx ends is left behind.
func readRequests(ctx context.Context, in io.Reader, cancel context.CancelCauseFunc) <-chan incoming {
	requests := make(chan incoming)
	go func() {
		defer close(requests)
		lines := newLines(in)
		for lines.Scan() {
			r, err := decodeRequest(lines.Bytes())
			select {
			case requests <- incoming{r, err}:
			case <-ctx.Done():
				return
			}
		}
		if err := lines.Err(); err != nil {
			cancel(fmt.Errorf("read request: %w", err))
			return
		}
		cancel(io.EOF)
	}()
	return requests
}

func decodeRequest(line []byte) (Request, error) {
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		return Request{}, &Error{Class: Invalid, Message: fmt.Sprintf("decode request: %v", err)}
	}
	if err := r.Validate(); err != nil {
		return Request{}, &Error{Class: Invalid, Message: err.Error()}
	}
	return r, nil
}

// eventWriter lets several goroutines emit. After an error it stays silent.
type eventWriter struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

func (w *eventWriter) write(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = writeLine(w.out, e)
	}
	return w.err
}
