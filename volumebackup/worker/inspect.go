//go:build linux

package worker

import (
	"context"
	"encoding/hex"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

const (
	// maxDamages is how many damages are listed, and maxDamageBytes how long their
	// paths may be together; the others are counted.
	maxDamages     = 1000
	maxDamageBytes = 1 << 20

	// listBatch is how many bytes of paths, about, go into one event.
	listBatch = 64 << 10
)

// list sends the entries of an archive.
func (s *session) list(ctx context.Context, r *protocol.ListRequest, e *emitter) (protocol.Result, error) {
	root, err := parseRoot(r.Root)
	if err != nil {
		return protocol.Result{}, err
	}
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.Result{}, err
	}
	defer unlock()
	m, err := s.store.OpenManifest(r.Snapshot, r.Archive)
	if err != nil {
		return protocol.Result{}, err
	}
	defer m.Close()
	summary := m.Summary()
	if root != nil && *root != summary.Root {
		return protocol.Result{}, &protocol.Error{Class: protocol.Damaged, Message: "the store holds another archive of this volume than the one that was taken for the snapshot"}
	}
	if err := sendEntries(ctx, m, e); err != nil {
		return protocol.Result{}, err
	}
	result := protocol.ListResult{Root: hex.EncodeToString(summary.Root[:]), Entries: summary.Entries, Bytes: summary.Bytes}
	return protocol.Result{List: &result}, nil
}

func sendEntries(ctx context.Context, m *store.Manifest, e *emitter) error {
	var batch []protocol.Entry
	size := 0
	send := func() {
		if len(batch) > 0 {
			e.emit(protocol.Event{Type: protocol.TypeEntries, Entries: batch})
		}
		batch, size = nil, 0
	}
	err := m.Each(func(entry *manifest.Entry) error {
		batch = append(batch, shown(entry))
		size += len(entry.Path) + len(entry.Target) + 128
		if size >= listBatch {
			send()
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	send()
	return nil
}

// shown is an entry as people see it.
func shown(e *manifest.Entry) protocol.Entry {
	out := protocol.Entry{
		Path: protocol.Path(e.Path), Kind: string(rune(e.Kind)), Mode: e.Mode, UID: e.UID, GID: e.GID, Size: e.Size,
		Modified: time.Unix(e.Modified.Sec, int64(e.Modified.Nsec)).UTC(), Target: protocol.Path(e.Target),
	}
	if e.Modified.Sec > maxTime || e.Modified.Sec < minTime {
		out.Modified = time.Time{} // JSON has no such year
	}
	for _, x := range e.Xattrs {
		out.Xattrs = append(out.Xattrs, x.Name)
	}
	return out
}

// The years that RFC 3339 can express: 0 to 9999.
const (
	minTime = -62167219200
	maxTime = 253402300799
)

// verify checks archives, or all there are.
func (s *session) verify(ctx context.Context, r *protocol.VerifyRequest, e *emitter) (protocol.Result, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.Result{}, err
	}
	defer unlock()
	asked := r.Snapshots
	if len(asked) == 0 {
		ids, err := s.store.Snapshots()
		if err != nil {
			return protocol.Result{}, err
		}
		for _, id := range ids {
			asked = append(asked, protocol.VerifySnapshot{Snapshot: id})
		}
	}
	v := verification{emitter: e}
	v.pieces = s.store.NewVerification(v.add)
	for _, snapshot := range asked {
		if err := v.snapshot(ctx, s.store, snapshot); err != nil {
			return protocol.Result{}, err
		}
	}
	v.result.Bytes = v.pieces.Bytes()
	return protocol.Result{Verify: &v.result}, nil
}

// verification collects damages.
type verification struct {
	*emitter
	pieces *store.Verification
	id     string
	number int

	mu     sync.Mutex
	result protocol.VerifyResult
	length int // of the paths in it
}

func (v *verification) snapshot(ctx context.Context, s *store.Store, asked protocol.VerifySnapshot) error {
	v.result.Snapshots++
	v.id = asked.Snapshot
	archives := make([]int, 0, len(asked.Roots))
	for n := range asked.Roots {
		archives = append(archives, n)
	}
	if len(archives) == 0 {
		var err error
		if archives, err = s.Archives(asked.Snapshot); err != nil {
			return v.missing(err)
		}
	}
	for _, n := range archives {
		root, err := parseRoot(asked.Roots[n])
		if err != nil {
			return err
		}
		v.number = n
		err = v.pieces.Archive(ctx, asked.Snapshot, n, root)
		if err := v.missing(err); err != nil {
			return err
		}
		v.counter.Bytes.Store(v.pieces.Bytes())
	}
	return nil
}

// missing counts what is not in the store as damage; any other error is one.
func (v *verification) missing(err error) error {
	if !errdefs.IsNotFound(err) {
		return err
	}
	v.add(&store.DamagedError{Pack: "snapshots/" + v.id, Offset: -1, Reason: "an archive is missing"})
	return nil
}

func (v *verification) add(d *store.DamagedError) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.length += len(d.Path); len(v.result.Damages) >= maxDamages || v.length > maxDamageBytes {
		v.result.More++
		return
	}
	v.result.Damages = append(v.result.Damages, protocol.Damage{
		Snapshot: v.id, Archive: v.number, Path: protocol.Path(d.Path), Pack: d.Pack, Offset: d.Offset, Message: d.Error(),
	})
}

func (s *session) remove(ctx context.Context, r *protocol.RemoveRequest) (protocol.Result, error) {
	removal := store.Removal{Now: s.options.Now()}
	if r.Seen != nil {
		removal.Seen = &store.Seen{Engine: r.Seen.Engine, ImageStore: r.Seen.ImageStore, Snapshots: r.Seen.Snapshots}
	}
	for _, c := range r.Snapshots {
		claim, err := parseClaim(c)
		if err != nil {
			return protocol.Result{}, err
		}
		removal.Snapshots = append(removal.Snapshots, claim)
	}
	removed, err := s.store.Remove(ctx, removal)
	if err != nil {
		return protocol.Result{}, err
	}
	return protocol.Result{Remove: &protocol.RemoveResult{Removed: removed.Snapshots, Foreign: removed.Foreign, Freed: removed.Freed}}, nil
}

func parseClaim(c protocol.Claim) (store.Claim, error) {
	claim := store.Claim{Snapshot: c.Snapshot, Container: c.Container, ContainerName: c.ContainerName, Roots: map[int]manifest.Sum{}}
	for n, text := range c.Roots {
		root, err := parseRoot(text)
		if err != nil {
			return store.Claim{}, err
		}
		if root != nil {
			claim.Roots[n] = *root
		}
	}
	return claim, nil
}

func (s *session) usage(ctx context.Context) (protocol.Result, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.Result{}, err
	}
	defer unlock()
	snapshots, total, err := s.store.Usage(ctx)
	if err != nil {
		return protocol.Result{}, err
	}
	result := protocol.UsageResult{Total: total}
	for _, u := range snapshots {
		result.Snapshots = append(result.Snapshots, protocol.SnapshotUsage{Snapshot: u.Snapshot, Own: u.Own, Shared: u.Shared})
	}
	return protocol.Result{Usage: &result}, nil
}

func (s *session) forget(ctx context.Context, r *protocol.ForgetRequest) error {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, volume := range r.Volumes {
		if err := s.store.Forget(volume); err != nil {
			return err
		}
	}
	return nil
}
