package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// RestoreOptions says which volumes are going to be restored.
type RestoreOptions struct {
	Lock     string            // ID of the container that is restored; empty: no lock is taken
	Worker   string            // name of the worker if it takes no lock; empty: any
	Purpose  string            // for people and for the journal
	Journal  map[string]string // more labels of the worker, for who has to repair what a crash left
	Freezes  []string          // IDs of containers that may be paused while it lives
	Volumes  []string
	Make     []volume.CreateOptions // those of the volumes that the engine makes together with the worker
	ReadOnly bool                   // nothing will be applied
	// Idle says that it only holds the volumes: nothing will be asked of it.
	Idle bool
	// MakeStore says that there may be no store yet: nothing is restored from it,
	// but something may be captured.
	MakeStore bool
	// Fill is set if the volumes are new, and only archives of which it is known what is in them are applied.
	Fill *Fill
}

// Fill says what comes into new volumes. What is not said cannot be made there.
type Fill struct {
	Devices bool // device nodes
	Trusted bool // trusted.* xattrs, and most of security.*
}

// rights are what the worker has to be able to do.
func (o RestoreOptions) rights() rights {
	switch {
	case o.Lock != "":
		r := toLock
		r.makesStore = o.MakeStore
		return r
	case o.Idle:
		return toHold
	case len(o.Volumes) == 0:
		return toLook
	case o.ReadOnly:
		return toCompare
	case o.Fill != nil:
		return toFill(o.Fill.Devices, o.Fill.Trusted)
	}
	r := toReplace
	r.makesStore = o.MakeStore
	return r
}

// Target is a volume that becomes what an archive says.
type Target struct {
	Archive int    // the archive's number in the snapshot
	Root    string // what the snapshot's labels say of it
	Volume  string // the volume that is restored
	Origin  string // the volume that was captured; empty: the same
	Local   bool   // for Check: if it is yet to be made, then among the engine's own volumes
}

// RestoreResult says what a restore did to one volume, or would do.
type RestoreResult = protocol.RestoreResult

// Restore is a worker that sees the volumes it may restore. Close ends it.
type Restore struct {
	*session
	volumes []string
	beside  bool // the store is among the engine's own volumes
}

// OpenRestore starts a worker for restoring volumes. While it lives, the engine
// keeps the volumes, whatever happens to the containers that mount them.
func (s *Service) OpenRestore(ctx context.Context, o RestoreOptions, p Progress) (*Restore, error) {
	j := job{name: o.Worker, purpose: o.Purpose, journal: o.Journal, frozen: o.Freezes, rights: o.rights()}
	if o.Lock != "" {
		j.name = LockName(o.Lock)
	}
	for i, name := range o.Volumes {
		m := Mount{Number: i, Volume: name, ReadOnly: o.ReadOnly}
		if at := slices.IndexFunc(o.Make, func(v volume.CreateOptions) bool { return v.Name == name }); at >= 0 {
			m.Make = &o.Make[at]
		}
		j.mounts = append(j.mounts, m)
	}
	session, err := s.start(ctx, j, p)
	if err != nil {
		return nil, err
	}
	r := &Restore{session: session, volumes: o.Volumes}
	if o.ReadOnly { // else all volumes are there by now
		r.beside = s.store.isPlain()
	}
	return r, nil
}

// Begin opens a backup of volumes that this worker sees, instead of in a worker
// of its own. One that is not published is dropped with the worker.
func (r *Restore) Begin(ctx context.Context, o BackupOptions, p Progress) (*Backup, error) {
	request := protocol.BeginRequest{Snapshot: o.Snapshot}
	for _, v := range o.Volumes {
		request.Mounts = append(request.Mounts, protocol.Mount{Number: slices.Index(r.volumes, v.Name), Volume: v.Name})
	}
	backup := &Backup{session: &session{conn: r.conn, client: r.client, store: r.store, storeID: r.storeID, shared: r.shared, emit: p.naming(r.session.volumes)}, borrowed: true}
	if err := r.client.Begin(ctx, request, backup.emit); err != nil {
		return nil, fmt.Errorf("open backup: %w", r.explain(err))
	}
	return backup, nil
}

// Check says why a target could not be restored, as far as that shows without
// comparing the volume with its archive.
func (r *Restore) Check(ctx context.Context, snapshot string, t Target) error {
	request := protocol.CheckRequest{Snapshot: snapshot, Archive: t.Archive, Root: t.Root}
	if n := slices.Index(r.volumes, t.Volume); n >= 0 {
		request.Mount = &protocol.Mount{Number: n, Volume: t.Volume}
	} else {
		request.Beside = t.Local && r.beside
	}
	if err := r.client.Check(ctx, request); err != nil {
		err = r.explain(err)
		if errors.Is(err, protocol.NotFound) {
			return r.missing(t, err)
		}
		return fmt.Errorf("volume %s: %w", t.Volume, err)
	}
	return nil
}

// Plan says what Apply would do, and changes nothing. It checks everything that
// Apply would read. The results are in the order of the targets.
func (r *Restore) Plan(ctx context.Context, snapshot string, targets []Target) ([]RestoreResult, error) {
	return r.each(ctx, snapshot, targets, true)
}

// Secure makes sure that what Apply is going to do to the targets can be undone: that they can be made again what
// they hold now, which the archives now, of the snapshot safety, say. It may take repairs in the store.
func (r *Restore) Secure(ctx context.Context, safety string, now []Target, snapshot string, targets []Target) error {
	for _, t := range targets {
		at := slices.IndexFunc(now, func(n Target) bool { return n.Volume == t.Volume })
		if at < 0 {
			continue // it was not there, or is not in the safety snapshot
		}
		_, err := r.client.Secure(ctx, protocol.SecureRequest{
			Now:   protocol.ArchiveRef{Snapshot: safety, Archive: now[at].Archive, Root: now[at].Root},
			Next:  protocol.ArchiveRef{Snapshot: snapshot, Archive: t.Archive, Root: t.Root},
			Mount: protocol.Mount{Number: slices.Index(r.volumes, t.Volume), Volume: t.Volume},
		}, r.emit)
		if err != nil {
			return fmt.Errorf("make sure that volume %s can be put back: %w", t.Volume, r.explain(err))
		}
	}
	return nil
}

// Apply makes every target what its archive says. Of several, all are checked
// before the first is touched.
func (r *Restore) Apply(ctx context.Context, snapshot string, targets []Target) ([]RestoreResult, error) {
	if len(targets) > 1 { // one alone is checked by the worker, before it writes
		if _, err := r.Plan(ctx, snapshot, targets); err != nil {
			return nil, err
		}
	}
	return r.each(ctx, snapshot, targets, false)
}

func (r *Restore) each(ctx context.Context, snapshot string, targets []Target, dryRun bool) ([]RestoreResult, error) {
	results := make([]RestoreResult, len(targets))
	for i, t := range targets {
		result, err := r.client.Restore(ctx, protocol.RestoreRequest{
			Snapshot: snapshot, Archive: t.Archive, Root: t.Root, DryRun: dryRun,
			Mount: protocol.Mount{Number: slices.Index(r.volumes, t.Volume), Volume: t.Volume},
		}, r.emit)
		if err != nil {
			err = r.explain(err)
			if errors.Is(err, protocol.NotFound) {
				return nil, r.missing(t, err)
			}
			return nil, fmt.Errorf("restore volume %s: %w", t.Volume, err)
		}
		results[i] = result
	}
	return results, nil
}
