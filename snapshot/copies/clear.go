package copies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// A worker may be dead although its client lives, and is about to say that the restore is done. So the client, and whoever
// clears up after the worker, compete for one name, which the engine gives once: the client renames the worker to it (it
// settles the restore), and the other starts a worker of that name, the heir. Who gets it decides whether there is a copy. The
// heir has the journal: if the process that clears up is killed in its turn, the next one clears up after the heir.

// ClearCopies removes what killed restores have left. A failure is only a warning: it prevents no
// restore.
func (cp *Copier) ClearCopies(ctx context.Context, p plan.Progress) {
	workers, err := cp.pending.Workers(ctx, volumebackup.LabelPurpose)
	if err == nil {
		_, err = cp.RemoveAbandoned(ctx, workers)
	}
	cp.pending.ClearDead(ctx, workers, p) // nobody can remove a volume that they mount
	for _, w := range workers {
		if _, made := w.Labels[pending.LabelMade]; made && !w.Alive && !pending.HoldsNothing(w) {
			_, clearErr := cp.Clear(ctx, w)
			err = errors.Join(err, clearErr)
		}
	}
	if err != nil && ctx.Err() == nil {
		p.Warn("check", fmt.Sprintf("leftovers of an interrupted restore could not be removed: %v", err))
	}
}

// Clear thaws what a dead worker left frozen, and removes the worker and what its restore made. It tells whether it did: it leaves
// alone a restore that is settled meanwhile, and one after which another process clears up.
func (cp *Copier) Clear(ctx context.Context, w pending.Worker) (bool, error) {
	made, madeErr := w.HalfMade()
	if made == nil {
		return true, errors.Join(cp.pending.Clear(ctx, w), madeErr)
	}
	heir, err := cp.openHeir(ctx, w, *made)
	if heir == nil || err != nil {
		return false, err
	}
	if err := cp.clearAll(ctx, w, *made); err != nil {
		return false, errors.Join(err, heir.Abandon()) // the worker may be gone, and not all that it made
	}
	return true, heir.Close()
}

// openHeir starts the heir of a dead worker. There is none, and no error, if somebody else was faster.
func (cp *Copier) openHeir(ctx context.Context, w pending.Worker, made pending.HalfMade) (archives.Worker, error) {
	made.Heir = w.ID
	journal, err := made.Labels()
	if err != nil {
		return nil, err
	}
	heir, err := cp.volumes.OpenWorker(ctx, volumebackup.WorkerOptions{
		Name: volumebackup.SettledName(w.ID), Once: true, Purpose: w.Labels[volumebackup.LabelPurpose], Journal: journal, Task: volumebackup.Hold{},
	}, nil)
	if cerrdefs.IsConflict(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("clear up after worker %s: %w", dockerop.SummaryName(w.Summary), err)
	}
	still, err := cp.docker.InspectIfThere(ctx, w.ID)
	if still == nil || err != nil { // it was settled and removed, or cleared away, just before
		return nil, errors.Join(err, heir.Close())
	}
	return heir, nil
}

// clearAll clears up after a dead worker and, if that is an heir, after those that were before it. Copies that run go only if the
// restore itself was interrupted not long ago. If its own worker is gone, they are, too: they go first.
func (cp *Copier) clearAll(ctx context.Context, w pending.Worker, made pending.HalfMade) error {
	dead := []pending.Worker{w}
	if made.Heir != "" {
		workers, err := cp.pending.Workers(ctx, pending.LabelMade)
		if err != nil {
			return err
		}
		dead = append(predecessors(workers, made), w)
	}
	first, err := dead[0].HalfMade()
	if err == nil && first.Together && first.Heir == "" {
		err = cp.removeTogether(ctx, dead[0].ID, made.Operation)
	}
	if err != nil {
		return err
	}
	for _, w := range dead {
		if err := cp.pending.Clear(ctx, w); err != nil {
			return err
		}
	}
	return cp.removeMade(ctx, made)
}

// predecessors returns the dead workers of an operation whose heir, or heir's heir, a worker was, the first one first.
func predecessors(workers []pending.Worker, made pending.HalfMade) (before []pending.Worker) {
	for range workers {
		at := slices.IndexFunc(workers, func(w pending.Worker) bool { return w.ID == made.Heir && !w.Alive })
		if at < 0 {
			break
		}
		earlier, err := workers[at].HalfMade()
		if err != nil || earlier == nil || earlier.Operation != made.Operation {
			break
		}
		before = append(before, workers[at])
		made = *earlier
	}
	slices.Reverse(before)
	return before
}

// removeMade removes what an interrupted restore has made.
func (cp *Copier) removeMade(ctx context.Context, made pending.HalfMade) error {
	_, err := cp.removeUnfinished(ctx, 0, func(operation string) bool { return operation == made.Operation })
	for _, name := range made.Volumes {
		err = errors.Join(err, cp.removeOwnVolume(ctx, name, made.Operation))
	}
	return errors.Join(err, cp.docker.RemoveVolumes(ctx, slices.DeleteFunc(made.Anonymous, func(name string) bool { return !runconfig.IsAnonymousName(name) })))
}
