//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// memoryLimit makes the collector work harder before the process grows beyond
// what a worker is to take.
const memoryLimit = 240 << 20

// Serve answers requests from in until it ends, or ctx does. What is unfinished by then is dropped.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) (err error) {
	debug.SetMemoryLimit(memoryLimit)
	if o.StoreRoot == "" {
		o.StoreRoot = "/store"
	}
	if o.MountRoot == "" {
		o.MountRoot = "/mnt"
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of those who bring none
	}
	if o.ProgressInterval <= 0 {
		o.ProgressInterval = progressInterval
	}
	s := &session{options: o}
	defer func() { err = errors.Join(err, s.close()) }()
	return protocol.Serve(ctx, in, out, s.handle, describe)
}

// session is what lasts from one request to the next.
type session struct {
	options Options
	store   *store.Store
	backup  *archive.Backup
}

func (s *session) close() error {
	var errs []error
	if s.backup != nil {
		errs = append(errs, s.backup.Discard())
		s.backup = nil
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
		s.store = nil
	}
	return errors.Join(errs...)
}

// open opens the store with the first request, so that what is wrong with it is that request's answer.
func (s *session) open() error {
	if s.store != nil {
		return nil
	}
	opened, err := store.Open(s.options.StoreRoot)
	if err != nil {
		return err
	}
	s.store = opened
	return nil
}

func (s *session) handle(ctx context.Context, r protocol.Request, emit func(protocol.Event)) (protocol.Result, error) {
	if err := s.open(); err != nil {
		return protocol.Result{}, err
	}
	e := &emitter{emit: emit, interval: s.options.ProgressInterval}
	stop := e.showProgress(string(r.Op))
	defer stop()
	s.store.SetPatience(store.Patience{Wait: time.Duration(r.LockTimeoutMillis) * time.Millisecond, Waiting: e.waiting})
	switch r.Op {
	case protocol.OpBegin:
		return protocol.Result{}, s.begin(ctx, r.Begin)
	case protocol.OpPass:
		return s.pass(ctx, r.Pass, e)
	case protocol.OpPublish:
		return s.publish(r.Publish, e)
	case protocol.OpDiscard:
		return protocol.Result{}, s.discard()
	case protocol.OpCheck:
		return protocol.Result{}, s.check(ctx, r.Check)
	case protocol.OpSecure:
		return s.secure(ctx, r.Secure, e)
	case protocol.OpRestore:
		return s.restore(ctx, r.Restore, e)
	case protocol.OpVerify:
		return s.verify(ctx, r.Verify, e)
	case protocol.OpRemove:
		return s.remove(ctx, r.Remove)
	case protocol.OpList:
		return s.list(ctx, r.List, e)
	case protocol.OpUsage:
		return s.usage(ctx)
	case protocol.OpForget:
		return protocol.Result{}, s.forget(ctx, r.Forget)
	case protocol.OpJournal:
		return protocol.Result{}, s.journal(r.Journal)
	default:
		return protocol.Result{}, fmt.Errorf("request %q: %w", r.Op, errdefs.ErrNotImplemented)
	}
}

func (s *session) mount(m protocol.Mount) archive.Mount {
	return archive.Mount{Number: m.Number, Volume: m.Volume, Path: filepath.Join(s.options.MountRoot, strconv.Itoa(m.Number))}
}
