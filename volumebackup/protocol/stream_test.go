package protocol

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"gotest.tools/v3/assert"
)

// slow takes a while for each Read or Write, of at most a few bytes.
type slow struct {
	io.Reader
	io.Writer
	most int
}

func (s slow) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return s.Reader.Read(b[:min(len(b), s.most)])
}

func (s slow) Write(b []byte) (written int, err error) {
	for written < len(b) && err == nil {
		time.Sleep(time.Millisecond)
		var n int
		n, err = s.Writer.Write(b[written:min(len(b), written+s.most)])
		written += n
	}
	return written, err
}

// echo answers with the bytes that it reads, and their number.
func echo(most int) Handler {
	return func(_ context.Context, _ Request, bytes io.ReadWriter, _ func(Event)) (any, error) {
		n, err := io.Copy(bytes, slow{Reader: bytes, most: most})
		return UsageResult{Total: n}, err
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Bytes arrive as they were sent, whatever their number and however slow either side is, request after request.
func TestBytesGoBothWays(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		for range 10 {
			most := 1000 + r.IntN(MaxChunk)
			c, served := connect(t, echo(most))
			for _, size := range []int{0, 1, MaxChunk, Window, Window + 1, r.IntN(20) * most} {
				want := randomBytes(r, size)
				var got bytes.Buffer
				in := slow{Reader: bytes.NewReader(want), most: 1000 + r.IntN(2*MaxChunk)}
				out := slow{Writer: &got, most: 1000 + r.IntN(2*MaxChunk)}
				result, err := callWith[UsageResult](t.Context(), c, UsageRequest{}, Streams{In: in, Out: out}, nil)
				assert.NilError(t, err)
				assert.Equal(t, result.Total, int64(size))
				assert.Assert(t, bytes.Equal(got.Bytes(), want))
				_, err = c.Usage(t.Context()) // one without bytes of its own
				assert.NilError(t, err)
			}
			assert.NilError(t, c.Close())
			assert.NilError(t, <-served)
		}
	})
}

// gate is a writer that waits until it is opened.
type gate struct{ open chan struct{} }

func (g gate) Write(b []byte) (int, error) {
	<-g.open
	return len(b), nil
}

// endless writes as much as it can, and counts.
func endless(w io.Writer, written *atomic.Int64) error {
	for {
		n, err := w.Write(make([]byte, 1000))
		written.Add(int64(n))
		if err != nil {
			return err
		}
	}
}

// Who does not read stops who writes, after a window. Everything else still comes through.
func TestASlowReaderStopsTheWriterOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		told := make(chan struct{})
		c, served := connect(t, func(ctx context.Context, _ Request, bytes io.ReadWriter, emit func(Event)) (any, error) {
			go func() { _ = endless(bytes, &written) }()
			for ctx.Err() == nil {
				time.Sleep(time.Second)
				if written.Load() >= Window-MaxChunk { // it stands
					emit(Event{Type: TypeProgress, Progress: &Progress{Phase: "going on"}})
				}
			}
			return nil, context.Cause(ctx)
		})
		ctx, cancel := context.WithCancel(t.Context())
		closed := gate{open: make(chan struct{})}
		ended := make(chan error)
		go func() {
			events := 0
			_, err := callWith[None](ctx, c, UsageRequest{}, Streams{Out: closed}, func(Event) {
				if events++; events == 5 {
					close(told)
				}
			})
			ended <- err
		}()
		<-told
		synctest.Wait()
		assert.Assert(t, written.Load() <= Window, "%d bytes", written.Load())
		cancel()
		close(closed.open)
		assert.ErrorIs(t, <-ended, context.Canceled)
		t.Log("the worker ended:", <-served)
	})
}

// A worker that does not read stops its client, after a window; its answer still ends the call.
func TestAWorkerThatDoesNotReadStopsTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		c, served := connect(t, func(context.Context, Request, io.ReadWriter, func(Event)) (any, error) {
			time.Sleep(time.Hour)
			return UsageResult{Total: sent.Load()}, nil
		})
		in := io.TeeReader(endlessReader{}, counter{&sent})
		for range 2 {
			sent.Store(0)
			result, err := callWith[UsageResult](t.Context(), c, UsageRequest{}, Streams{In: in}, nil)
			assert.NilError(t, err)
			assert.Assert(t, result.Total >= Window && result.Total <= Window+MaxChunk, "%d bytes", result.Total)
		}
		assert.NilError(t, c.Close())
		assert.NilError(t, <-served)
	})
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// A handler whose client sends nothing reads nothing, instead of waiting.
func TestWhoSendsNothingIsAtItsEnd(t *testing.T) {
	c, _ := connect(t, echo(10))
	result, err := callWith[UsageResult](t.Context(), c, UsageRequest{}, Streams{Out: io.Discard}, nil)
	assert.NilError(t, err)
	assert.Equal(t, result.Total, int64(0))
}

func TestCancelInTheMiddleOfBytes(t *testing.T) {
	for name, streams := range map[string]Streams{
		"sending": {In: endlessReader{}}, "receiving": {Out: io.Discard}, "both": {In: endlessReader{}, Out: io.Discard},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			handled := make(chan error, 1)
			c, served := connect(t, func(_ context.Context, _ Request, bytes io.ReadWriter, _ func(Event)) (any, error) {
				var written atomic.Int64
				writing := make(chan error, 1)
				if streams.Out != nil {
					go func() { writing <- endless(bytes, &written) }()
				} else {
					writing <- nil
				}
				_, err := io.CopyN(io.Discard, bytes, 3*Window)
				cancel()
				if streams.In != nil {
					_, err = io.Copy(io.Discard, bytes)
				}
				handled <- errors.Join(err, <-writing)
				return nil, err
			})
			_, err := callWith[None](ctx, c, UsageRequest{}, streams, nil)
			assert.ErrorIs(t, err, context.Canceled)
			assert.Assert(t, <-handled != nil)
			t.Log("the worker ended:", <-served)
		})
	}
}

// An error of the caller's own reader or writer ends the conversation, and is the call's error.
func TestAnErrorOfTheCallersEnd(t *testing.T) {
	mine := errors.New("mine")
	for _, streams := range []Streams{{In: iotest.ErrReader(mine), Out: io.Discard}, {In: strings.NewReader("text"), Out: failing{mine}}} {
		c, served := connect(t, echo(10))
		_, err := callWith[None](t.Context(), c, UsageRequest{}, streams, nil)
		assert.ErrorIs(t, err, mine)
		t.Log("the worker ended:", <-served)
		_, err = c.Usage(t.Context())
		assert.ErrorIs(t, err, mine)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A worker that is gone in the middle of a chunk, or breaks the rules, ends the call.
func TestAWorkerThatBreaksOffOrTheRules(t *testing.T) {
	window := strings.Repeat(`{"type":"frame","frame":{"length":32768}}`+"\n"+strings.Repeat("x", MaxChunk), Window/MaxChunk)
	for name, tc := range map[string]struct {
		says string
		want string
	}{
		"gone in a chunk":   {`{"type":"frame","frame":{"length":10}}` + "\nabc", errLost.Error()},
		"gone before it":    {`{"type":"frame","frame":{"length":10}}` + "\n", errLost.Error()},
		"gone in a line":    {`{"type":"frame","fra`, errLost.Error()},
		"too long":          {`{"type":"frame","frame":{"length":32769}}` + "\n", "is impossible"},
		"negative":          {`{"type":"frame","frame":{"length":-1}}` + "\n", "is impossible"},
		"nothing":           {`{"type":"frame","frame":{}}` + "\n", "is impossible"},
		"two things":        {`{"type":"frame","frame":{"length":1,"end":true}}` + "\nx", "is impossible"},
		"over the window":   {window + `{"type":"frame","frame":{"length":1}}` + "\nx", "more bytes come than the window allows"},
		"taken, never sent": {`{"type":"frame","frame":{"taken":1}}` + "\n", "more bytes were taken than sent"},
		"after the end":     {`{"type":"frame","frame":{"end":true}}` + "\n" + `{"type":"frame","frame":{"length":1}}` + "\nx", "bytes come after their end"},
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			go func() {
				_, _ = io.WriteString(far, `{"type":"hello","hello":{"protocol":2}}`+"\n")
				request := bufio.NewReader(far)
				_, _ = request.ReadString('\n')
				go func() { _, _ = io.Copy(io.Discard, request) }()
				_, _ = io.WriteString(far, tc.says)
				_ = far.Close()
			}()
			c := NewClient(near)
			_, err := callWith[None](t.Context(), c, UsageRequest{}, Streams{Out: slow{Writer: io.Discard, most: MaxChunk}}, nil)
			assert.ErrorContains(t, err, tc.want, name)
			assert.NilError(t, c.Close())
		})
	}
	c, _ := connect(t, func(_ context.Context, _ Request, bytes io.ReadWriter, _ func(Event)) (any, error) {
		_, err := bytes.Write([]byte("x"))
		return nil, err
	})
	_, err := c.Usage(t.Context())
	assert.ErrorContains(t, err, "bytes come that nobody asked for")
}

// A client that is gone in the middle of a chunk, or breaks the rules, ends the worker.
func TestAClientThatBreaksOffOrTheRules(t *testing.T) {
	const request = `{"op":"usage","sends":true,"arguments":{}}` + "\n"
	for name, tc := range map[string]struct {
		says string
		want string // empty: the client is gone, which is no error
	}{
		"gone in a chunk":      {request + `{"frame":{"length":10}}` + "\nabc", ""},
		"gone":                 {request, ""},
		"without a request":    {`{"frame":{"length":1}}` + "\nx", "bytes come without a request"},
		"nothing was promised": {`{"op":"usage","arguments":{}}` + "\n" + `{"frame":{"length":1}}` + "\nx", "bytes come after their end"},
		"too long":             {request + `{"frame":{"length":32769}}` + "\n", "is impossible"},
		"over the window":      {request + strings.Repeat(`{"frame":{"length":32768}}`+"\n"+strings.Repeat("x", MaxChunk), 9), "more bytes come than the window allows"},
	} {
		t.Run(name, func(t *testing.T) {
			handle := func(ctx context.Context, r Request, bytes io.ReadWriter, _ func(Event)) (any, error) {
				<-ctx.Done()
				_, err := io.Copy(io.Discard, bytes)
				assert.Check(t, err != nil || !r.Sends, "the bytes were cut off")
				return nil, err
			}
			in, writer := io.Pipe()
			go func() {
				_, _ = io.WriteString(writer, tc.says)
				_ = writer.Close()
			}()
			err := Serve(t.Context(), in, io.Discard, handle, describeAll)
			_ = in.Close()
			if tc.want == "" {
				assert.NilError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

// checkedStream is a handler that never holds more than the window.
func checkedStream(t *testing.T) Handler {
	return func(_ context.Context, _ Request, bytes io.ReadWriter, _ func(Event)) (any, error) {
		s := bytes.(*stream)
		n, err := io.CopyN(io.Discard, bytes, 100)
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.Check(t, s.inbox.Len() <= Window && s.credit >= 0 && s.credit <= Window)
		return UsageResult{Total: n}, err
	}
}

// FuzzClientFrames is a client that says anything, with bytes.
func FuzzClientFrames(f *testing.F) {
	f.Add([]byte(`{"op":"usage","sends":true,"arguments":{}}` + "\n" + `{"frame":{"length":3}}` + "\nabc" + `{"frame":{"end":true}}` + "\n"))
	f.Add([]byte(`{"frame":{"taken":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		var out bytes.Buffer
		_ = Serve(t.Context(), bytes.NewReader(said), &out, checkedStream(t), describeAll)
		for line := range strings.Lines(out.String()) {
			assert.Assert(t, json.Valid([]byte(line)), line)
		}
	})
}

// FuzzWorkerFrames is a worker that says anything, with bytes.
func FuzzWorkerFrames(f *testing.F) {
	hello := `{"type":"hello","hello":{"protocol":2}}` + "\n"
	f.Add([]byte(hello + `{"type":"frame","frame":{"length":3}}` + "\nabc" + `{"type":"result","result":{}}` + "\n"))
	f.Add([]byte(hello + `{"type":"frame","frame":{"taken":3}}` + "\n" + `{"type":"frame","frame":{"end":true}}` + "\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		conn := struct {
			io.Reader
			io.Writer
			io.Closer
		}{bytes.NewReader(said), io.Discard, io.NopCloser(nil)}
		var got bytes.Buffer
		c := NewClient(conn)
		_, err := callWith[None](t.Context(), c, UsageRequest{}, Streams{In: strings.NewReader("some"), Out: &got}, nil)
		assert.Assert(t, got.Len() <= len(said))
		_ = fmt.Sprint(err)
	})
}
