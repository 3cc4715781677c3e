package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Client is the client's end of the conversation. Calls are made one at a time.
type Client struct {
	// LockTimeout is how long each call may wait for others who use the store.
	LockTimeout time.Duration

	conn    io.ReadWriteCloser
	lines   *lineReader
	out     *lineWriter
	greeted bool
	broken  error
	closing sync.Once
	closed  error
}

// NewClient speaks over conn. It closes conn in Close, and when a call is cancelled.
func NewClient(conn io.ReadWriteCloser) *Client {
	return &Client{conn: conn, lines: newLineReader(conn), out: &lineWriter{out: conn}}
}

// Close ends the conversation; the worker drops what is unfinished.
func (c *Client) Close() error {
	c.closing.Do(func() { c.closed = c.conn.Close() })
	return c.closed
}

// call asks for an operation and decodes its result. Events before the result go to emit, which may be nil.
func call[R any](ctx context.Context, c *Client, a Arguments, emit func(Event)) (R, error) {
	return callWith[R](ctx, c, a, Streams{}, emit)
}

// callWith is call with bytes that go along.
func callWith[R any](ctx context.Context, c *Client, a Arguments, s Streams, emit func(Event)) (R, error) {
	var result R
	encoded, err := c.ask(ctx, a, s, emit)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(encoded, &result); err != nil {
		c.broken = fmt.Errorf("decode the worker's answer to %q: %w", a.Op(), err)
		return result, c.broken
	}
	return result, nil
}

// ask sends a request and waits for its answer. When ctx ends the conversation ends with it: the worker stops and
// drops what is unfinished.
func (c *Client) ask(ctx context.Context, a Arguments, s Streams, emit func(Event)) (json.RawMessage, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	if err := a.validate(); err != nil {
		return nil, fmt.Errorf("request %q: %w", a.Op(), err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	bytes := newStream(c.sendFrame)
	stop := context.AfterFunc(ctx, func() {
		_ = c.Close()
		bytes.fail(ctx.Err())
	})
	defer stop()
	r := Request{LockTimeoutMillis: c.LockTimeout.Milliseconds(), Sends: s.In != nil, Arguments: a}
	result, err := c.exchange(r, bytes, s, emit)
	if err == nil {
		return result, nil
	}
	if canceled := ctx.Err(); canceled != nil {
		c.broken = canceled
		return nil, canceled
	}
	if _, ok := errors.AsType[*Error](err); !ok {
		c.broken = fmt.Errorf("talk to worker: %w", err)
		return nil, c.broken
	}
	return nil, err
}

func (c *Client) sendFrame(f Frame, chunk []byte) error {
	return c.out.write(struct {
		Frame Frame `json:"frame"`
	}{f}, chunk)
}

func (c *Client) exchange(r Request, bytes *stream, s Streams, emit func(Event)) (json.RawMessage, error) {
	if err := c.greet(); err != nil {
		return nil, err
	}
	if err := c.out.write(r, nil); err != nil {
		return nil, err
	}
	copying := c.copy(bytes, s)
	result, err := c.answer(bytes, s, emit)
	return result, copying.finish(err)
}

// answer reads what the worker says until it answers.
func (c *Client) answer(bytes *stream, s Streams, emit func(Event)) (json.RawMessage, error) {
	for {
		e, err := c.next()
		switch {
		case err != nil:
			return nil, err
		case e.Type == TypeResult:
			return e.Result, nil
		case e.Type == TypeError:
			return nil, e.Error
		case e.Type == TypeHello:
			return nil, errors.New("unexpected hello")
		case e.Type == TypeFrame && e.Frame.Taken == 0 && s.Out == nil:
			return nil, errors.New("bytes come that nobody asked for")
		case e.Type == TypeFrame:
			if err := c.lines.frame(*e.Frame, bytes); err != nil {
				return nil, asLost(err)
			}
		case emit != nil:
			emit(e)
		}
	}
}

// greet reads the worker's hello, once.
func (c *Client) greet() error {
	if c.greeted {
		return nil
	}
	e, err := c.next()
	if err != nil {
		return err
	}
	if e.Type == TypeError {
		return e.Error
	}
	if e.Type != TypeHello {
		return fmt.Errorf("the first message is %q, not hello", e.Type)
	}
	if e.Hello.Protocol != Version {
		return &VersionError{Worker: e.Hello.Protocol}
	}
	c.greeted = true
	return nil
}

func (c *Client) next() (Event, error) {
	line, err := c.lines.next()
	if err != nil {
		return Event{}, asLost(err)
	}
	return decodeEvent(line)
}

// asLost says what the end of the worker's stream means.
func asLost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errLost
	}
	return err
}
