//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// memoryLimit makes the garbage collector work harder before the process takes more memory than a worker should.
const memoryLimit = 240 << 20

// Serve answers requests from in until in ends, or ctx does. It drops what is unfinished then.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	return serve(ctx, in, out, o, func(Options) error { return nil })
}

// serve is Serve that calls narrows before it changes a volume.
func serve(ctx context.Context, in io.Reader, out io.Writer, o Options, narrows func(Options) error) (err error) {
	debug.SetMemoryLimit(memoryLimit)
	if o.StoreRoot == "" {
		o.StoreRoot = "/store"
	}
	if o.MountRoot == "" {
		o.MountRoot = "/mnt"
	}
	if o.CgroupRoot == "" {
		o.CgroupRoot = "/cgroup"
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default clock
	}
	if o.ProgressInterval <= 0 {
		o.ProgressInterval = progressInterval
	}
	s := &session{options: o, images: map[string][]byte{}}
	s.narrow = sync.OnceValue(func() error { return narrows(o) })
	defer func() { err = errors.Join(err, s.close()) }()
	return protocol.Serve(ctx, in, out, s.handle, describe)
}

// session is what lasts from one request to the next.
type session struct {
	options Options
	narrow  func() error // before a volume is changed: the store is not, but for what is recorded of that volume
	store   *store.Store
	backup  *archive.Backup
	images  map[string][]byte // manifests of root filesystems that the client has told of, by their keys
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

// open opens the store with the first request, so that an error of the store is the answer to that request.
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

func (s *session) handle(ctx context.Context, r protocol.Request, bytes io.ReadWriter, emit func(protocol.Event)) (any, error) {
	h, known := operations[r.Arguments.Op()]
	if !known {
		return nil, fmt.Errorf("request %q: %w", r.Arguments.Op(), errdefs.ErrNotImplemented)
	}
	e := &exchange{bytes: bytes, emit: emit, interval: s.options.ProgressInterval}
	if !h.noStore {
		if err := s.open(); err != nil {
			return nil, err
		}
	}
	stop := e.showProgress(string(r.Arguments.Op()))
	defer stop()
	if h.noStore {
		return h.answer(s, ctx, r.Arguments, e)
	}
	s.store.SetPatience(store.Patience{Wait: time.Duration(r.LockTimeoutMillis) * time.Millisecond, Waiting: e.waiting})
	return h.answer(s, ctx, r.Arguments, e)
}
