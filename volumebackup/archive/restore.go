//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// RestoreOptions say what to restore and where.
type RestoreOptions struct {
	Snapshot string
	Archive  int
	Root     *manifest.Sum // what the archive's root must be, if it is known
	Mount    Mount
	Beside   string  // for Check, if there is no mount: it will be made on the filesystem of this folder
	Chosen   *Choice // the entries that are restored; nil: all
	DryRun   bool
	sibling  string // the path of a volume that was restored from the same archive; empty: there is none
}

// RestoreResult says what a restore did, or would do.
type RestoreResult struct {
	manifest.Summary
	Changes Changes
	Skipped int64 // what the kernel did not allow
}

// Restore makes a volume what an archive says. Unless the volume is empty, it first reads and checks every piece that it
// needs. The process must have no other use for its umask.
func Restore(ctx context.Context, s *store.Store, o RestoreOptions, reporter Reporter, counter *Counter) (RestoreResult, error) {
	return restoreAfter(ctx, longestWrite, s, o, reporter, counter)
}

func restoreAfter(
	ctx context.Context, longest time.Duration, s *store.Store, o RestoreOptions, reporter Reporter, counter *Counter,
) (_ RestoreResult, err error) {
	unlock, err := s.Share(ctx)
	if err != nil {
		return RestoreResult{}, err
	}
	defer unlock()
	t, err := openTree(o.Mount.Path)
	if err != nil {
		return RestoreResult{}, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	var like *tree
	if o.sibling != "" {
		if like, err = openTree(o.sibling); err != nil {
			return RestoreResult{}, err
		}
		defer func() { err = errors.Join(err, like.close()) }()
	}
	r := &restore{
		RestoreOptions: o, like: like, store: s, tree: t, longestWrite: longest, counter: counter,
		warner: warner{reporter: reporter, mount: o.Mount.Number}, inexact: map[string]struct{}{},
		uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()), maxHeld: maxHeld,
	}
	if err := r.run(ctx); err != nil {
		return RestoreResult{}, err // who asked knows which volume it was
	}
	return RestoreResult{Summary: r.summary, Changes: r.plan.changes, Skipped: r.warner.count.Load()}, nil
}

// restore is one restore that is under way.
type restore struct {
	RestoreOptions
	store        *store.Store
	tree         *tree
	like         *tree // where the content of files is read from; nil: the store
	longestWrite time.Duration
	counter      *Counter
	warner       warner
	summary      manifest.Summary
	plan         *plan
	maxHeld      int64  // bytes that the plan may take in memory
	uid          uint32 // who makes the files
	gid          uint32

	mu      sync.Mutex
	inexact map[string]struct{} // entries that the kernel did not let us make as they were
}

func (r *restore) run(ctx context.Context) error {
	if err := r.makePlan(ctx); err != nil {
		return err
	}
	if r.plan.isEmpty() && r.plan.hasHead {
		return nil
	}
	if !r.plan.fresh || r.DryRun {
		if err := r.checkPieces(ctx); err != nil || r.DryRun {
			return err
		}
	}
	before, err := r.headOfRest()
	if err != nil {
		return err
	}
	defer before.close()
	if err := r.store.DropHead(r.Mount.Key); err != nil {
		return err
	}
	r.counter.Total.Store(r.counter.Bytes.Load() + r.plan.changes[Created].Bytes + r.plan.changes[Changed].Bytes)
	if err := r.carryOut(ctx); err != nil {
		if r.plan.fresh {
			return errors.Join(err, r.tree.clear(context.WithoutCancel(ctx)))
		}
		return err
	}
	return r.writeHead(ctx, &before)
}

// carryOut applies the plan, and waits until that is durable.
func (r *restore) carryOut(ctx context.Context) error {
	defer unix.Umask(unix.Umask(0))
	if err := r.apply(ctx); err != nil {
		return err
	}
	if err := unix.Syncfs(r.tree.fd()); err != nil {
		return fmt.Errorf("sync volume: %w", err)
	}
	return nil
}

// manifest opens the manifest to restore.
func (r *restore) manifest() (*store.Manifest, error) {
	m, err := r.store.OpenManifest(r.Snapshot, r.Archive)
	if err != nil {
		return nil, err
	}
	if r.Root != nil && m.Summary().Root != *r.Root {
		m.Close()
		return nil, &store.DamagedError{
			Pack: fmt.Sprintf("snapshots/%s/%d.man", r.Snapshot, r.Archive), Offset: -1,
			Reason: "it is not the list of files that was written for the snapshot",
		}
	}
	return m, nil
}

// skip notes that the kernel did not let us make an entry as it was.
func (r *restore) skip(path, what string, err error) {
	r.warner.warn(path, fmt.Sprintf("%s: %v", what, err))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inexact[path] = struct{}{}
}

// forbidden says that the kernel or the filesystem does not allow something here.
func forbidden(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTSUP) ||
		errors.Is(err, unix.EINVAL)
}
