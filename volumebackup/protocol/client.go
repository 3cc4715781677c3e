package protocol

import (
	"bufio"
	"bytes"
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
	lines   *bufio.Scanner
	greeted bool
	broken  error
	closing sync.Once
	closed  error
}

// NewClient speaks over conn, which it closes in Close and when a call is cancelled.
func NewClient(conn io.ReadWriteCloser) *Client {
	return &Client{conn: conn, lines: newLines(conn)}
}

// Close ends the conversation; the worker drops what is unfinished.
func (c *Client) Close() error {
	c.closing.Do(func() { c.closed = c.conn.Close() })
	return c.closed
}

// Call sends a request and waits for its answer. Events before the answer go to
// emit, which may be nil. When ctx ends the conversation ends with it: the
// worker stops and drops what is unfinished.
func (c *Client) Call(ctx context.Context, r Request, emit func(Event)) (Result, error) {
	if c.broken != nil {
		return Result{}, c.broken
	}
	r.LockTimeoutMillis = c.LockTimeout.Milliseconds()
	if err := r.Validate(); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	result, err := c.exchange(r, emit)
	if err == nil {
		return result, nil
	}
	if canceled := ctx.Err(); canceled != nil {
		c.broken = canceled
		return Result{}, canceled
	}
	if _, ok := errors.AsType[*Error](err); !ok {
		c.broken = fmt.Errorf("talk to worker: %w", err)
		return Result{}, c.broken
	}
	return Result{}, err
}

func (c *Client) exchange(r Request, emit func(Event)) (Result, error) {
	if err := c.greet(); err != nil {
		return Result{}, err
	}
	if err := writeLine(c.conn, r); err != nil {
		return Result{}, err
	}
	for {
		e, err := c.next()
		switch {
		case err != nil:
			return Result{}, err
		case e.Type == TypeResult:
			return *e.Result, nil
		case e.Type == TypeError:
			return Result{}, e.Error
		case e.Type == TypeHello:
			return Result{}, errors.New("unexpected hello")
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
	if !c.lines.Scan() {
		if err := c.lines.Err(); err != nil {
			return Event{}, err
		}
		return Event{}, errLost
	}
	return decodeEvent(c.lines.Bytes())
}

// Begin opens a backup.
func (c *Client) Begin(ctx context.Context, r BeginRequest, emit func(Event)) error {
	_, err := c.Call(ctx, Request{Op: OpBegin, Begin: &r}, emit)
	return err
}

// Pass reads what changed since the pass before.
func (c *Client) Pass(ctx context.Context, mode Mode, emit func(Event)) (PassResult, error) {
	return answer(c, ctx, Request{Op: OpPass, Pass: &PassRequest{Mode: mode}}, emit, func(r Result) *PassResult { return r.Pass })
}

// Publish makes the backup durable and visible.
func (c *Client) Publish(ctx context.Context, r PublishRequest, emit func(Event)) (PublishResult, error) {
	return answer(c, ctx, Request{Op: OpPublish, Publish: &r}, emit, func(r Result) *PublishResult { return r.Publish })
}

// Discard drops the backup.
func (c *Client) Discard(ctx context.Context) error {
	_, err := c.Call(ctx, Request{Op: OpDiscard}, nil)
	return err
}

// Check says whether Restore could be done.
func (c *Client) Check(ctx context.Context, r CheckRequest) error {
	_, err := c.Call(ctx, Request{Op: OpCheck, Check: &r}, nil)
	return err
}

// Secure makes sure that a restore can be undone.
func (c *Client) Secure(ctx context.Context, r SecureRequest, emit func(Event)) (SecureResult, error) {
	return answer(c, ctx, Request{Op: OpSecure, Secure: &r}, emit, func(r Result) *SecureResult { return r.Secure })
}

// Restore makes a volume what it was.
func (c *Client) Restore(ctx context.Context, r RestoreRequest, emit func(Event)) (RestoreResult, error) {
	return answer(c, ctx, Request{Op: OpRestore, Restore: &r}, emit, func(r Result) *RestoreResult { return r.Restore })
}

// Verify checks every byte of the snapshots.
func (c *Client) Verify(ctx context.Context, r VerifyRequest, emit func(Event)) (VerifyResult, error) {
	return answer(c, ctx, Request{Op: OpVerify, Verify: &r}, emit, func(r Result) *VerifyResult { return r.Verify })
}

// Remove deletes snapshots and frees what no other refers to.
func (c *Client) Remove(ctx context.Context, r RemoveRequest, emit func(Event)) (RemoveResult, error) {
	return answer(c, ctx, Request{Op: OpRemove, Remove: &r}, emit, func(r Result) *RemoveResult { return r.Remove })
}

// List hands each entry of an archive to visit.
func (c *Client) List(ctx context.Context, r ListRequest, visit func(Entry)) (ListResult, error) {
	emit := func(e Event) {
		for _, entry := range e.Entries {
			visit(entry)
		}
	}
	return answer(c, ctx, Request{Op: OpList, List: &r}, emit, func(r Result) *ListResult { return r.List })
}

// Usage tells what each snapshot holds in the store.
func (c *Client) Usage(ctx context.Context) (UsageResult, error) {
	return answer(c, ctx, Request{Op: OpUsage}, nil, func(r Result) *UsageResult { return r.Usage })
}

// Forget drops the stat caches of volumes that no longer exist.
func (c *Client) Forget(ctx context.Context, volumes []string) error {
	_, err := c.Call(ctx, Request{Op: OpForget, Forget: &ForgetRequest{Volumes: volumes}}, nil)
	return err
}

// Journal records the journal of an operation, or looks for it.
func (c *Client) Journal(ctx context.Context, r JournalRequest) error {
	_, err := c.Call(ctx, Request{Op: OpJournal, Journal: &r}, nil)
	return err
}

// answer calls, and takes the part of the result that belongs to the request.
//
//nolint:revive // the receiver of a method cannot have type parameters, so c comes before ctx
func answer[T any](c *Client, ctx context.Context, r Request, emit func(Event), part func(Result) *T) (T, error) {
	var none T
	result, err := c.Call(ctx, r, emit)
	if err != nil {
		return none, err
	}
	p := part(result)
	if p == nil {
		c.broken = fmt.Errorf("the worker's answer to %q is empty", r.Op)
		return none, c.broken
	}
	return *p, nil
}

func newLines(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	return lines
}

func writeLine(w io.Writer, value any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if line.Len() > MaxLine {
		return fmt.Errorf("message of %d bytes is too long", line.Len())
	}
	if _, err := w.Write(line.Bytes()); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}
