package commands

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lineTransport carries messages as lines of JSON. The SDK's transport ends at the first invalid line, and drops the answers
// that are missing when the input ends.
type lineTransport struct {
	in  io.Reader
	out io.Writer
}

// maxLine is the most bytes of a line.
const maxLine = 16 << 20

// methodListen is the request that is never answered: its answers are notifications, until it is cancelled.
const methodListen = "subscriptions/listen"

// errLineTooLong says that a line is longer than maxLine.
var errLineTooLong = fmt.Errorf("the line is longer than %d bytes", maxLine)

// Connect begins to read.
func (t lineTransport) Connect(context.Context) (mcp.Connection, error) {
	c := &lineConnection{
		out: t.out, lines: make(chan inputLine), closed: make(chan struct{}),
		unanswered: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1),
	}
	go c.readLines(bufio.NewReader(t.in))
	return c, nil
}

// lineConnection is the conversation with one client.
type lineConnection struct {
	lines  chan inputLine
	close  sync.Once
	closed chan struct{}

	mu         sync.Mutex // for the rest
	out        io.Writer
	unanswered map[jsonrpc.ID]bool
	answered   chan struct{} // has a value if unanswered may have become empty
}

// inputLine is a line, or the error of reading it.
type inputLine struct {
	text []byte
	err  error
}

// readLines hands out lines until the input ends. A read of stdin cannot be interrupted, so it has a goroutine of its own.
func (c *lineConnection) readLines(in *bufio.Reader) {
	for {
		text, err := readLine(in)
		select {
		case c.lines <- inputLine{text, err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return
		}
	}
}

// readLine reads a line without its end. A line that is too long is read, and dropped.
func readLine(in *bufio.Reader) (line []byte, err error) {
	tooLong := false
	for {
		part, err := in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxLine; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(bytes.TrimSpace(line)) == 0 && !tooLong:
			return nil, err
		case tooLong:
			return nil, errLineTooLong
		}
		return bytes.TrimSpace(line), nil // without an end, the next call finds out why
	}
}

// Read returns the next message. It answers an invalid line with an error. After the last line it waits until every request is
// answered: the SDK drops later answers.
func (c *lineConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var line inputLine
		select {
		case line = <-c.lines:
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case errors.Is(line.err, errLineTooLong):
			if err := c.refuse(jsonrpc.CodeParseError, line.err); err != nil {
				return nil, err
			}
		case line.err != nil:
			c.waitForAnswers()
			return nil, line.err
		case len(line.text) > 0:
			if message, err := c.decode(line.text); message != nil || err != nil {
				return message, err
			}
		}
	}
}

// decode returns the message in a line, or nil if the line was refused.
func (c *lineConnection) decode(line []byte) (jsonrpc.Message, error) {
	message, err := jsonrpc.DecodeMessage(line)
	switch request, isRequest := message.(*jsonrpc.Request); {
	case err != nil && !json.Valid(line):
		return nil, c.refuse(jsonrpc.CodeParseError, errors.New("the line is not JSON: write each message on a line of its own"))
	case err != nil:
		return nil, c.refuse(jsonrpc.CodeInvalidRequest, err)
	case isRequest && request.IsCall() && request.Method != methodListen:
		c.mu.Lock()
		c.unanswered[request.ID] = true
		c.mu.Unlock()
	}
	return message, nil
}

// refuse answers an invalid line. The protocol has the ID null for that.
func (c *lineConnection) refuse(code int, reason error) error {
	answer := struct {
		Version string         `json:"jsonrpc"`
		ID      any            `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", nil, &jsonrpc.Error{Code: int64(code), Message: reason.Error()}}
	text, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writeLine(text)
}

// waitForAnswers returns once every request is answered, or the connection is closed.
func (c *lineConnection) waitForAnswers() {
	for {
		c.mu.Lock()
		left := len(c.unanswered)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return
		}
	}
}

// Write writes a message as a line.
func (c *lineConnection) Write(_ context.Context, message jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.writeLine(text)
	if response, is := message.(*jsonrpc.Response); is {
		delete(c.unanswered, response.ID)
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

func (c *lineConnection) writeLine(text []byte) error {
	if _, err := c.out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write to the client: %w", err)
	}
	return nil
}

// Close ends a Read. Stdin and stdout stay open.
func (c *lineConnection) Close() error {
	c.close.Do(func() { close(c.closed) })
	return nil
}

// SessionID is empty: there is one session.
func (c *lineConnection) SessionID() string { return "" }
