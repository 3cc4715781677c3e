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
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
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
	handle := func(_ context.Context, r Request, _ io.ReadWriter, emit func(Event)) (any, error) {
		emit(Event{Type: TypeProgress, Progress: &Progress{Phase: string(r.Arguments.Op()), Files: 1}})
		emit(Event{Type: TypeWarning, Warning: &Warning{Path: "\xff\n", Message: "odd"}})
		return UsageResult{Total: 7}, nil
	}
	c, served := connect(t, handle)
	for range 3 {
		var events []Event
		result, err := call[UsageResult](t.Context(), c, UsageRequest{}, func(e Event) { events = append(events, e) })
		assert.NilError(t, err)
		assert.Equal(t, result.Total, int64(7))
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
		NewerVersion: errdefs.IsFailedPrecondition, Invalid: errdefs.IsInvalidArgument, TooLarge: errdefs.IsOutOfRange, Canceled: errdefs.IsCanceled, Internal: errdefs.IsInternal,
	}
	var class Class
	c, _ := connect(t, func(context.Context, Request, io.ReadWriter, func(Event)) (any, error) {
		return nil, &Error{Class: class, Message: "no", Path: "a\xffb", Pack: "p", Offset: 9}
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
	c, served := connect(t, func(ctx context.Context, _ Request, _ io.ReadWriter, _ func(Event)) (any, error) {
		close(started)
		<-ctx.Done()
		close(stopped)
		return nil, context.Cause(ctx)
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
	for _, said := range []string{"", `{"type":"hello","hello":{"protocol":2}}` + "\n", "not JSON\n", `{"type":"result"}` + "\n"} {
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
	}{strings.NewReader(`{"type":"hello","hello":{"protocol":3}}` + "\n"), io.Discard, io.NopCloser(nil)}
	_, err := NewClient(conn).Usage(t.Context())
	var version *VersionError
	assert.Assert(t, errors.As(err, &version), "%v", err)
	assert.Equal(t, version.Worker, 3)
	assert.Assert(t, errdefs.IsFailedPrecondition(err))
}

func TestBadRequests(t *testing.T) {
	for line, want := range map[string]string{
		`{`:                               "decode request",
		`[]`:                              "decode request",
		`{"op":"begin"}`:                  `request \"begin\" without its arguments`,
		`{"op":"usage","arguments":null}`: `request \"usage\" without its arguments`,
		`{"op":"unknown","arguments":{}}`: `request \"unknown\" is unknown`,
		`{"op":"usage","arguments":{"mounts":[]}}`:    `request \"usage\" with other arguments`,
		`{"op":"begin","arguments":{"mounts":7}}`:     `request \"begin\" with other arguments`,
		`{"op":"pass","arguments":{"mode":"asleep"}}`: `request \"pass\": mode \"asleep\"`,
		`{"op":"journal","arguments":{"act":"x"}}`:    `request \"journal\": act \"x\"`,
	} {
		var out bytes.Buffer
		reader, writer := io.Pipe()
		answered := 0
		handle := func(context.Context, Request, io.ReadWriter, func(Event)) (any, error) {
			answered++
			return None{}, writer.Close()
		}
		go func() { _, _ = io.WriteString(writer, line+"\n"+`{"op":"usage","arguments":{}}`+"\n") }()
		assert.NilError(t, Serve(t.Context(), reader, &out, handle, describeAll))
		assert.Equal(t, answered, 1, line) // it goes on
		assert.Assert(t, strings.Contains(out.String(), `"type":"error","error":{"class":"invalid","message":"`+want), "%s: %s", line, out.String())
	}
}

// Every operation can be asked for, and what its arguments say arrives.
func TestArgumentsArrive(t *testing.T) {
	filled := map[Op]Arguments{
		OpBegin:   BeginRequest{Snapshot: "s", Mounts: []Mount{{Number: 1, Key: "v"}}},
		OpPass:    PassRequest{Mode: Frozen},
		OpPublish: PublishRequest{Engine: "e", ImageStore: "i", Container: "c", ContainerName: "n", First: true, Labels: map[string]string{"k": "v"}},
		OpDiscard: DiscardRequest{},
		OpCheck:   CheckRequest{Snapshot: "s", Archive: 1, Root: "r", Mount: &Mount{Number: 2}, Beside: true},
		OpSecure:  SecureRequest{Now: ArchiveRef{Snapshot: "s"}, Next: ArchiveRef{Archive: 3, Root: "r"}, Mount: Mount{Key: "v"}},
		OpRestore: RestoreRequest{Snapshot: "s", Archive: 1, Root: "r", Mount: Mount{Number: 1}, DryRun: true},
		OpFill:    FillRequest{Snapshot: "s", Archive: 1, Root: "r", Mounts: []Mount{{Number: 1}, {Number: 2, Key: "v"}}},
		OpVerify:  VerifyRequest{Snapshots: []VerifySnapshot{{Snapshot: "s", Roots: map[int]string{1: "r"}}}},
		OpRemove:  RemoveRequest{Snapshots: []Claim{{Snapshot: "s"}}, Seen: &Seen{Engine: "e", Snapshots: []string{}}, Retention: time.Hour, Volumes: []string{"v"}},
		OpLost:    LostRequest{Seen: Seen{Engine: "e", ImageStore: "i", Snapshots: []string{"s"}}},
		OpRecord:  RecordRequest{Claim: Claim{Snapshot: "s", Container: "c", ContainerName: "n", Roots: map[int]string{1: "r"}}, Labels: map[string]string{"k": "v"}},
		OpList:    ListRequest{Snapshot: "s", Archive: 1, Root: "r", Sums: true},
		OpExtract: ExtractRequest{Snapshot: "s", Archive: 1, Root: "r", Path: "p\xff", Directory: true, Follow: true, Look: true, Name: "n"},
		OpUsage:   UsageRequest{},
		OpJournal: JournalRequest{Act: RecordJournal, Worker: "w", Text: "t"},
		OpFreeze:  FreezeRequest{Container: strings.Repeat("a1", containerIDLength/2), Frozen: true},

		OpDiff:  DiffRequest{Old: Tree{Archive: &ArchiveRef{Snapshot: "s", Root: "r"}}, New: Tree{Mount: &Mount{Number: 1, Key: "v", Excluded: &labels.Exclusions{Patterns: []string{"p"}}}}, Hidden: []Path{"d"}},
		OpKnown: KnownRequest{Images: []string{strings.Repeat("ab", 32)}},
		OpLearn: LearnRequest{Image: strings.Repeat("ab", 32), Keep: true, Walked: strings.Repeat("cd", 32)},

		OpRecall: RecallRequest{Walked: strings.Repeat("ab", 32)},
		OpWalk:   WalkRequest{Created: 1},

		OpAttach:     AttachRequest{Name: "n"},
		OpAttachment: AttachmentRequest{Snapshot: "s", Name: "n"},
	}
	var got Arguments
	c, _ := connect(t, func(_ context.Context, r Request, _ io.ReadWriter, _ func(Event)) (any, error) {
		got = r.Arguments
		return None{}, nil
	})
	for _, op := range Operations() {
		assert.Assert(t, filled[op] != nil, "%s is not tried", op)
		_, err := call[None](t.Context(), c, filled[op], nil)
		assert.NilError(t, err)
		assert.DeepEqual(t, got, filled[op])
	}
}

func TestLinesAreBounded(t *testing.T) {
	endless := io.MultiReader(strings.NewReader(`{"op":"`), endlessReader{})
	err := Serve(t.Context(), endless, io.Discard, nil, describeAll)
	assert.ErrorContains(t, err, "a line of more than 16777216 bytes")
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
	f.Add([]byte(`{"op":"begin","arguments":{"snapshot":"s","mounts":[{"number":1,"volume":"v"}]}}`))
	f.Add([]byte(`{"op":"begin","arguments":{"snapshot":"s","mounts":[{"number":1,"key":"v","excluded":{"patterns":["a"],"globs":[],"gitignore":true,"kept":{"snapshot":"20260101-000000-abcdef","index":1,"root":"ab"}}}]}}`))
	f.Add([]byte(`{"op":"begin","arguments":{"snapshot":"s","mounts":[],"doubt":{"full":true,"fraction":0.1,"every":10}}}`))
	f.Add([]byte(`{"op":"fill","arguments":{"snapshot":"s","archive":1,"root":"00","mounts":[{"number":1},{"number":2}]}}`))
	f.Add([]byte(`{"op":"restore","arguments":{"snapshot":"s","archive":1,"root":"00","mount":{"number":1},"dry_run":true}}`))
	f.Add([]byte(`{"op":"extract","arguments":{"snapshot":"s","archive":1,"path":"a/b","directory":true,"name":"b","destination":"/d"}}`))
	f.Add([]byte(`{"op":"remove","sends":true,"arguments":{"snapshots":[{"snapshot":"a"}],"seen":{"engine":"e"},"retention":7}}`))
	f.Add([]byte(`{"op":"lost","arguments":{"seen":{"engine":"e","image_store":"i","snapshots":["a"]}}}`))
	f.Add([]byte(`{"op":"record","arguments":{"claim":{"snapshot":"a","roots":{"1":"r"}},"labels":{"k":"v"}}}`))
	f.Add([]byte(`{"op":"record","arguments":{"claim":{"snapshot":"a","roots":{}},"labels":{"k":"v"}}}`))
	f.Add([]byte(`{"op":"freeze","arguments":{"container":"` + strings.Repeat("a1", containerIDLength/2) + `","frozen":true}}`))
	f.Add([]byte(`{"op":"walk","sends":true,"arguments":{"created":1767225600}}`))
	f.Add([]byte(`{"op":"recall","arguments":{"walked":"` + strings.Repeat("a1", 32) + `"}}`))
	f.Add([]byte(`{"op":"learn","sends":true,"arguments":{"image":"` + strings.Repeat("a1", 32) + `","keep":true,"walked":"` + strings.Repeat("b2", 32) + `"}}`))
	f.Add([]byte(`{"op":"diff","arguments":{"old":{"image":"a"},"new":{},"hidden":["dev","var/lib"]}}`))
	f.Add([]byte(`{"frame":{"length":7}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		said, err := decodeLine(line)
		if err != nil {
			assert.ErrorIs(t, err, Invalid)
			return
		}
		if said.frame != nil {
			_ = said.frame.validate()
			return
		}
		var again bytes.Buffer
		assert.NilError(t, writeLine(&again, said.request, nil))
		same, err := decodeLine(again.Bytes())
		assert.NilError(t, err)
		assert.DeepEqual(t, same.request, said.request, cmpopts.EquateEmpty()) // what is empty is left out
	})
}

func FuzzEvent(f *testing.F) {
	for _, e := range []Event{
		{Type: TypeHello, Hello: &Hello{Protocol: 2}},
		{Type: TypeWarning, Warning: &Warning{Path: "\xff", Message: "m"}},
		{Type: TypeError, Error: &Error{Class: Damaged, Message: "m", Path: `"`, Offset: 3}},
		{Type: TypeResult, Result: json.RawMessage(`{"changes":[{"change":"create","path":"p"}]}`)},
		{Type: TypeFrame, Frame: &Frame{Length: 3}},
		{Type: TypeEntries, Entries: []Entry{{Path: "p", Kind: "f"}}},
		{Type: TypeLost, Lost: &Lost{Snapshot: "s", Labels: map[string]string{"k": "v"}}},
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
		assert.NilError(t, writeLine(&again, e, nil))
		_, err = decodeEvent(again.Bytes())
		assert.NilError(t, err)
	})
}
