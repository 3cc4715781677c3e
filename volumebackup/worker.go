package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// WorkerOptions say what a worker is for, and which volumes it sees.
type WorkerOptions struct {
	Name    string            // of its container; empty: any
	Once    bool              // if there is a container of that name, fail at once: with a conflict
	Purpose string            // for people
	Journal map[string]string // labels that tell another process what to recover if this one dies
	Task    Task
	Volumes []string
	Make    []volume.CreateOptions // those of the volumes that the engine makes together with the worker
}

// Task is what a worker is for. It gets the rights that this takes, and no others: a task is [Hold], [Compare], [Fill]
// or [Replace].
type Task interface{ rights() rights }

// Hold keeps the engine from removing the volumes. The worker can do nothing else.
type Hold struct{}

// Compare checks archives and says what restoring them would do. It applies nothing.
type Compare struct{}

// Fill says what comes into new volumes. What is not said cannot be made there.
type Fill struct {
	Devices bool // device nodes
	Trusted bool // trusted.* xattrs, and most of security.*
}

// Replace captures volumes and puts archives into them: what is in them is not known.
type Replace struct {
	// MakeStore says that there may be no store yet: nothing is restored from it, but something may be captured.
	MakeStore bool
}

func (Hold) rights() rights    { return toHold }
func (Compare) rights() rights { return toCompare }
func (f Fill) rights() rights  { return toFill(f.Devices, f.Trusted) }

func (r Replace) rights() rights {
	needed := toReplace
	needed.makesStore = r.MakeStore
	return needed
}

// rights are what the worker has to be able to do.
func (o WorkerOptions) rights() rights {
	needed := o.Task.rights()
	if len(o.Volumes) == 0 && !needed.noStore {
		return toLook
	}
	return needed
}

// isReadOnly tells whether the volumes are mounted read-only.
func (o WorkerOptions) isReadOnly() bool {
	_, compares := o.Task.(Compare)
	return compares
}

// Target is a volume that becomes what an archive says.
type Target struct {
	Snapshot string // its ID
	Archive  int    // the archive's number in the snapshot
	Root     string // what the snapshot's labels say of it
	Volume   string // the volume that is restored, by its key, see [labels.Mount.Key]
	Origin   string // the volume that was captured; empty: the same
	// Excluded says what the archive does not have although the volume may. It is left alone.
	Excluded *labels.Exclusions
	// Chosen says which entries are restored; nil: all. A volume that is filled gets all.
	Chosen *Choice
	Local  bool // for Check: if it is yet to be made, then among the engine's own volumes
}

// Choice names entries of a volume by where a container sees them.
type Choice = protocol.Choice

// RestoreResult says what a restore did to one volume, or would do.
type RestoreResult = protocol.RestoreResult

// Worker reads and writes the volumes that it sees. It holds no lock: a [Lock] does. Close ends it.
type Worker struct {
	session *session
	volumes []string
	fills   bool // its volumes are new
	beside  bool // the store is among the engine's own volumes
}

// OpenWorker starts a worker. While it lives, the engine keeps its volumes, whatever happens to the containers that
// mount them.
func (s *Service) OpenWorker(ctx context.Context, o WorkerOptions, p Progress) (*Worker, error) {
	j := job{name: o.Name, once: o.Once, purpose: o.Purpose, journal: o.Journal, rights: o.rights()}
	for i, name := range o.Volumes {
		m := Mount{Number: i, Volume: name, ReadOnly: o.isReadOnly()}
		if at := slices.IndexFunc(o.Make, func(v volume.CreateOptions) bool { return v.Name == name }); at >= 0 {
			m.Make = &o.Make[at]
		}
		j.mounts = append(j.mounts, m)
	}
	session, err := s.start(ctx, j, p)
	if err != nil {
		return nil, err
	}
	_, fills := o.Task.(Fill)
	w := &Worker{session: session, volumes: o.Volumes, fills: fills}
	if o.isReadOnly() { // else all volumes are there by now
		w.beside = s.store.isPlain()
	}
	return w, nil
}

// Release marks the journal of the worker as settled: nobody recovers what it says any more. It fails with [ErrLost] if
// somebody does so already.
func (w *Worker) Release(ctx context.Context) error { return w.session.Release(ctx) }

// Abandon ends the worker, and leaves its container with the journal.
func (w *Worker) Abandon() error { return w.session.Abandon() }

// Close ends the worker and removes it. What was not published is dropped.
func (w *Worker) Close() error { return w.session.Close() }

// Begin opens a backup of volumes that this worker sees, instead of in a worker of its own. A backup that is not
// published is dropped with the worker.
func (w *Worker) Begin(ctx context.Context, o BackupOptions, p Progress) (*Backup, error) {
	request := protocol.BeginRequest{Snapshot: o.Snapshot}
	for _, v := range o.Volumes {
		request.Mounts = append(request.Mounts, v.mount(slices.Index(w.volumes, v.Key)))
	}
	b := &Backup{session: w.session, emit: p.naming(w.session.volumes), end: func() error { return nil }}
	if err := b.begin(ctx, request); err != nil {
		return nil, err
	}
	return b, nil
}

// Check says why a target could not be restored, as far as that shows without comparing the volume with its archive.
func (w *Worker) Check(ctx context.Context, t Target) error {
	request := protocol.CheckRequest{Snapshot: t.Snapshot, Archive: t.Archive, Root: t.Root}
	if n := slices.Index(w.volumes, t.Volume); n >= 0 {
		request.Mount = &protocol.Mount{Number: n, Key: t.Volume}
	} else {
		request.Beside = t.Local && w.beside
	}
	if err := w.session.client.Check(ctx, request); err != nil {
		err = w.session.explain(err)
		if errors.Is(err, protocol.NotFound) {
			return w.session.missing(t, err)
		}
		return fmt.Errorf("%s of snapshot %s: %w", labels.DescribeKey(t.Volume), t.Snapshot, err)
	}
	return nil
}

// Plan says what Apply would do, and changes nothing. It checks everything that Apply would read. The results are in
// the order of the targets.
func (w *Worker) Plan(ctx context.Context, targets []Target) ([]RestoreResult, error) {
	return w.each(ctx, protocol.RestoreRequest{DryRun: true}, targets)
}

// Secure makes sure that what Apply is going to do to the targets can be rolled back: now are the archives of what they
// hold now. Secure may have to repair these in the store.
func (w *Worker) Secure(ctx context.Context, now, targets []Target) error {
	for _, t := range targets {
		at := slices.IndexFunc(now, func(n Target) bool { return n.Volume == t.Volume })
		if at < 0 {
			continue // it was not there, or is not in the safety snapshot
		}
		_, err := w.session.client.Secure(ctx, protocol.SecureRequest{
			Now:   protocol.ArchiveRef{Snapshot: now[at].Snapshot, Archive: now[at].Archive, Root: now[at].Root},
			Next:  protocol.ArchiveRef{Snapshot: t.Snapshot, Archive: t.Archive, Root: t.Root},
			Mount: protocol.Mount{Number: slices.Index(w.volumes, t.Volume), Key: t.Volume},
		}, w.session.emit)
		if err != nil {
			return fmt.Errorf("make sure that %s can be put back: %w", labels.DescribeKey(t.Volume), w.session.explain(err))
		}
	}
	return nil
}

// Apply makes every target what its archive says. Of several targets, it checks all before it touches the first, unless
// the volumes are new. The content of an archive that several new volumes get is read once.
func (w *Worker) Apply(ctx context.Context, targets []Target) ([]RestoreResult, error) {
	if w.fills {
		return w.fill(ctx, targets)
	}
	if len(targets) > 1 { // one alone is checked by the worker, before it writes
		if _, err := w.Plan(ctx, targets); err != nil {
			return nil, err
		}
	}
	return w.each(ctx, protocol.RestoreRequest{}, targets)
}

// fill sends one request for each archive. A failure leaves some volumes filled and some not: they are new, and go with
// what they were made for.
func (w *Worker) fill(ctx context.Context, targets []Target) ([]RestoreResult, error) {
	results := make([]RestoreResult, len(targets))
	isDone := make([]bool, len(targets))
	for first, t := range targets {
		if isDone[first] {
			continue
		}
		r := protocol.FillRequest{Snapshot: t.Snapshot, Archive: t.Archive, Root: t.Root}
		var places []int // of those that get the same
		for i, other := range targets {
			if other.Snapshot == t.Snapshot && other.Archive == t.Archive && other.Root == t.Root {
				places, isDone[i] = append(places, i), true
				r.Mounts = append(r.Mounts, protocol.Mount{Number: slices.Index(w.volumes, other.Volume), Key: other.Volume, Excluded: other.Excluded})
			}
		}
		filled, err := w.session.client.Fill(ctx, r, w.session.emit)
		if err != nil {
			return nil, w.failed(t, err)
		}
		if len(filled.Volumes) != len(places) {
			return nil, fmt.Errorf("restore %s: the worker has answered for %d volumes instead of %d", labels.DescribeKey(t.Volume), len(filled.Volumes), len(places))
		}
		for i, place := range places {
			results[place] = filled.Volumes[i]
		}
	}
	return results, nil
}

// failed says why a target could not be restored.
func (w *Worker) failed(t Target, err error) error {
	err = w.session.explain(err)
	if errors.Is(err, protocol.NotFound) {
		return w.session.missing(t, err)
	}
	return fmt.Errorf("restore %s of snapshot %s: %w", labels.DescribeKey(t.Volume), t.Snapshot, err)
}

// each sends one request for each target; r says what the requests have in common.
func (w *Worker) each(ctx context.Context, r protocol.RestoreRequest, targets []Target) ([]RestoreResult, error) {
	results := make([]RestoreResult, len(targets))
	for i, t := range targets {
		r.Snapshot, r.Archive, r.Root = t.Snapshot, t.Archive, t.Root
		r.Mount = protocol.Mount{Number: slices.Index(w.volumes, t.Volume), Key: t.Volume, Excluded: t.Excluded}
		r.Chosen = t.Chosen
		result, err := w.session.client.Restore(ctx, r, w.session.emit)
		if err != nil {
			return nil, w.failed(t, err)
		}
		results[i] = result
	}
	return results, nil
}
