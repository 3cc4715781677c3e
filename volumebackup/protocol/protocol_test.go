package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"go.uber.org/goleak"
	"gotest.tools/v3/assert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func describeAll(err error) *Error {
	if reported, ok := errors.AsType[*Error](err); ok {
		return reported
	}
	return &Error{Class: Internal, Message: err.Error()}
}

// connect runs a handler at the other end of a pipe. The channel gives what Serve returned.
func connect(t *testing.T, handle Handler) (*Client, <-chan error) {
	t.Helper()
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), far, far, handle, describeAll)
		_ = far.Close()
	}()
	c := NewClient(near)
	t.Cleanup(func() { _ = c.Close() })
	return c, served
}

func TestCall(t *testing.T) {
	handle := func(_ context.Context, r Request, emit func(Event)) (Result, error) {
		emit(Event{Type: TypeProgress, Progress: &Progress{Phase: string(r.Op), Files: 1}})
		emit(Event{Type: TypeWarning, Warning: &Warning{Path: "\xff\n", Message: "odd"}})
		return Result{Usage: &UsageResult{Total: 7}}, nil
	}
	c, served := connect(t, handle)
	for range 3 {
		var events []Event
		result, err := c.Call(t.Context(), Request{Op: OpUsage}, func(e Event) { events = append(events, e) })
		assert.NilError(t, err)
		assert.Equal(t, result.Usage.Total, int64(7))
		assert.DeepEqual(t, events, []Event{
			{Type: TypeProgress, Progress: &Progress{Phase: "usage", Files: 1}},
			{Type: TypeWarning, Warning: &Warning{Path: "\xff\n", Message: "odd"}},
		})
	}
	assert.NilError(t, c.Close())
	assert.NilError(t, <-served)
}

func TestErrorsSurviveThePipe(t *testing.T) {
	standards := map[Class]func(error) bool{
		NotFound: errdefs.IsNotFound, Conflict: errdefs.IsConflict, Damaged: errdefs.IsDataLoss, NoSpace: errdefs.IsResourceExhausted,
		NewerVersion: errdefs.IsFailedPrecondition, Invalid: errdefs.IsInvalidArgument, Canceled: errdefs.IsCanceled, Internal: errdefs.IsInternal,
	}
	var class Class
	c, _ := connect(t, func(context.Context, Request, func(Event)) (Result, error) {
		return Result{}, &Error{Class: class, Message: "no", Path: "a\xffb", Pack: "p", Offset: 9}
	})
	for class = range standards {
		_, err := c.Usage(t.Context())
		assert.Error(t, err, "no")
		assert.ErrorIs(t, err, class)
		assert.Assert(t, standards[class](err), class)
		var reported *Error
		assert.Assert(t, errors.As(err, &reported))
		assert.Equal(t, *reported, Error{Class: class, Message: "no", Path: "a\xffb", Pack: "p", Offset: 9})
	}
}

func TestCancelEndsTheRequest(t *testing.T) {
	stopped := make(chan struct{})
	started := make(chan struct{})
	c, served := connect(t, func(ctx context.Context, _ Request, _ func(Event)) (Result, error) {
		close(started)
		<-ctx.Done()
		close(stopped)
		return Result{}, context.Cause(ctx)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	_, err := c.Usage(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	<-stopped
	assert.Assert(t, <-served != nil) // there was nobody left to answer to
	_, err = c.Usage(t.Context())
	assert.ErrorIs(t, err, context.Canceled)
}

func TestWorkerDies(t *testing.T) {
	for _, said := range []string{"", `{"type":"hello","hello":{"protocol":1}}` + "\n", "not JSON\n", `{"type":"result"}` + "\n"} {
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			go func() { _, _ = io.Copy(io.Discard, far) }()
			_, _ = io.WriteString(far, said)
			_ = far.Close()
		}()
		c := NewClient(near)
		_, err := c.Usage(t.Context())
		assert.ErrorContains(t, err, "talk to worker", said)
		<-done
		assert.NilError(t, c.Close())
	}
}

func TestOtherVersion(t *testing.T) {
	conn := struct {
		io.Reader
		io.Writer
		io.Closer
	}{strings.NewReader(`{"type":"hello","hello":{"protocol":2}}` + "\n"), io.Discard, io.NopCloser(nil)}
	_, err := NewClient(conn).Usage(t.Context())
	var version *VersionError
	assert.Assert(t, errors.As(err, &version), "%v", err)
	assert.Equal(t, version.Worker, 2)
	assert.Assert(t, errdefs.IsFailedPrecondition(err))
}

func TestBadRequests(t *testing.T) {
	in := strings.Join([]string{
		`{`, `[]`, `{"op":"begin"}`, `{"op":"unknown"}`, `{"op":"usage","begin":{}}`, `{"op":"pass","pass":{"mode":"asleep"}}`,
		`{"op":"usage"}`,
	}, "\n") + "\n"
	answered := 0
	var out bytes.Buffer
	reader, writer := io.Pipe()
	handle := func(context.Context, Request, func(Event)) (Result, error) {
		answered++
		return Result{}, writer.Close()
	}
	go func() { _, _ = io.WriteString(writer, in) }()
	assert.NilError(t, Serve(t.Context(), reader, &out, handle, describeAll))
	assert.Equal(t, answered, 1)
	assert.Equal(t, strings.Count(out.String(), `"type":"error","error":{"class":"invalid"`), 6, out.String())
}

func TestLinesAreBounded(t *testing.T) {
	endless := io.MultiReader(strings.NewReader(`{"op":"`), endlessReader{})
	err := Serve(t.Context(), endless, io.Discard, nil, describeAll)
	assert.ErrorContains(t, err, "token too long")
	mounts := make([]Mount, MaxItems+1)
	c, _ := connect(t, nil)
	assert.Assert(t, errdefs.IsInvalidArgument(c.Begin(t.Context(), BeginRequest{Mounts: mounts}, nil)))
}

type endlessReader struct{}

func (endlessReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestPathsAreBytes(t *testing.T) {
	for _, path := range []Path{"", "plain", "new\nline", `"quoted"`, `"`, "\xff", "\"\xff", "ünï", "\u2028", "�", "a\\b"} {
		text, err := json.Marshal(path)
		assert.NilError(t, err)
		var back Path
		assert.NilError(t, json.Unmarshal(text, &back))
		assert.Equal(t, back, path, string(text))
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"op":"begin","begin":{"snapshot":"s","mounts":[{"number":1,"volume":"v"}]}}`))
	f.Add([]byte(`{"op":"restore","restore":{"snapshot":"s","archive":1,"root":"00","mount":{"number":1},"dry_run":true}}`))
	f.Add([]byte(`{"op":"remove","remove":{"snapshots":["a"],"existing":[]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := decodeRequest(line)
		if err != nil {
			assert.ErrorIs(t, err, Invalid)
			return
		}
		var again bytes.Buffer
		assert.NilError(t, writeLine(&again, r))
		same, err := decodeRequest(again.Bytes())
		assert.NilError(t, err)
		assert.DeepEqual(t, same, r)
	})
}

func FuzzEvent(f *testing.F) {
	for _, e := range []Event{
		{Type: TypeHello, Hello: &Hello{Protocol: 1}},
		{Type: TypeWarning, Warning: &Warning{Path: "\xff", Message: "m"}},
		{Type: TypeError, Error: &Error{Class: Damaged, Message: "m", Path: `"`, Offset: 3}},
		{Type: TypeResult, Result: &Result{Restore: &RestoreResult{Changes: []EntryChange{{Change: Created, Path: "p"}}}}},
		{Type: TypeEntries, Entries: []Entry{{Path: "p", Kind: "f"}}},
	} {
		line, err := json.Marshal(e)
		assert.NilError(f, err)
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := decodeEvent(line)
		if err != nil {
			return
		}
		if e.Type == TypeError {
			_ = fmt.Sprint(e.Error, errdefs.IsNotFound(e.Error))
		}
		var again bytes.Buffer
		assert.NilError(t, writeLine(&again, e))
		_, err = decodeEvent(again.Bytes())
		assert.NilError(t, err)
	})
}
