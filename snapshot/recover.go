package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Recovery says what was put right after an interrupted operation.
type Recovery struct {
	Container string `json:"container"`
	Text      string `json:"text"`
}

// Recover puts right what interrupted operations left: of one container, or of
// all if its name is empty. Operations that are under way are left alone.
func (e *Engine) Recover(ctx context.Context, name string, p Progress) ([]Recovery, error) {
	workers, err := e.workers(ctx, volumebackup.LabelPurpose)
	if err != nil {
		return nil, err
	}
	about := []string{name}
	if c, err := e.inspectIfThere(ctx, name); err != nil {
		return nil, err
	} else if c != nil {
		about = append(about, c.ID, containerName(*c))
	}
	var done []Recovery
	var failed error
	for _, w := range workers {
		if e.isAlive(w) {
			continue
		}
		r, err := e.recoverWorker(ctx, w, about, p)
		failed = errors.Join(failed, err)
		if r != nil {
			done = append(done, *r)
		}
	}
	return done, failed
}

// Settle puts right what was interrupted of restores in place of a container, and
// waits first for what is under way.
func (e *Engine) Settle(ctx context.Context, name string, p Progress) error {
	for {
		pending, err := e.pendingReplacements(ctx, []string{name})
		if err != nil || len(pending) == 0 {
			return err
		}
		if err := e.conclude(ctx, pending, p); err != nil {
			return err
		}
	}
}

// observeSettled observes a container of which no restore in place is under way, or
// was interrupted. It looks for one while it observes: there hardly ever is, and
// then it observes again.
func (e *Engine) observeSettled(ctx context.Context, o CreateOptions, engineID func() (string, error), p Progress) (source, error) {
	for {
		var pending []replacing
		var from source
		var failed error
		calls, callsCtx := errgroup.WithContext(ctx)
		calls.Go(func() (err error) {
			if e.volumes != nil {
				pending, err = e.pendingReplacements(callsCtx, []string{o.Container})
			}
			return err
		})
		calls.Go(func() error {
			from, failed = e.observe(callsCtx, o, engineID)
			return nil // what is pending may be the reason
		})
		if err := calls.Wait(); err != nil {
			return source{}, err
		}
		if len(pending) == 0 {
			return from, failed
		}
		if err := e.conclude(ctx, pending, p); err != nil {
			return source{}, err
		}
	}
}

// clearCopies removes what restores into new containers have left that were
// killed.
func (e *Engine) clearCopies(ctx context.Context) error {
	if e.volumes == nil {
		return nil
	}
	workers, err := e.workers(ctx, labelMade)
	for _, w := range workers {
		if !e.isAlive(w) {
			_, clearErr := e.recoverFrozen(ctx, w, []string{""})
			err = errors.Join(err, clearErr)
		}
	}
	return err
}

// workers lists the containers with one of our labels, dead ones too.
func (e *Engine) workers(ctx context.Context, label string) ([]container.Summary, error) {
	workers, err := e.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
	return workers, describe(err, "list workers")
}

// startGrace is how many seconds a worker may exist before it runs.
const startGrace = 10

// isAlive tells whether a worker is at work, about to be, or about to be gone.
func (e *Engine) isAlive(w container.Summary) bool {
	return w.State == container.StateRunning || w.State == container.StateRemoving ||
		w.State == container.StateCreated && e.now().Unix()-w.Created < startGrace
}

// replacing is a restore in place that is under way, or was interrupted.
type replacing struct {
	worker  container.Summary
	journal journal
}

// pendingReplacements finds those of the containers with these names or IDs.
func (e *Engine) pendingReplacements(ctx context.Context, names []string) ([]replacing, error) {
	workers, err := e.workers(ctx, labelJournal)
	if err != nil {
		return nil, err
	}
	var pending []replacing
	for _, w := range workers {
		j, err := readJournal(w.Labels[labelJournal])
		if err != nil {
			return nil, err
		}
		ending := volumebackup.IsSettled(summaryName(w)) && e.isAlive(w)
		if j.isAbout(names) && !ending {
			pending = append(pending, replacing{w, j})
		}
	}
	return pending, nil
}

// conclude waits for what is under way, and takes back what was interrupted.
func (e *Engine) conclude(ctx context.Context, pending []replacing, p Progress) error {
	for _, r := range pending {
		if e.isAlive(r.worker) {
			p.status("check", "waiting for another operation on container "+r.journal.Name)
			if err := e.volumes.Await(ctx, r.journal.lock()); err != nil {
				return err
			}
			continue
		}
		done, err := e.recoverReplace(ctx, r, p)
		if err != nil {
			return err
		}
		if done != nil {
			p.warn("recover", done.Container+": "+done.Text)
		}
	}
	return nil
}

// recoverWorker puts right what one dead worker stands for. It returns nil if
// that is another container's business.
func (e *Engine) recoverWorker(ctx context.Context, w container.Summary, about []string, p Progress) (*Recovery, error) {
	text, isReplace := w.Labels[labelJournal]
	if !isReplace {
		return e.recoverFrozen(ctx, w, about)
	}
	j, err := readJournal(text)
	if err != nil {
		return nil, err
	}
	if about[0] != "" && !j.isAbout(about) {
		return nil, nil
	}
	return e.recoverReplace(ctx, replacing{w, j}, p)
}

// recoverReplace takes an interrupted restore in place back. It returns nil if
// somebody else was faster.
func (e *Engine) recoverReplace(ctx context.Context, r replacing, p Progress) (*Recovery, error) {
	if volumebackup.IsSettled(summaryName(r.worker)) {
		return nil, errors.Join(e.finishReplace(ctx, r.journal, p), e.discard(ctx, r.worker.ID))
	}
	options, err := r.journal.options()
	if err != nil {
		return nil, err
	}
	lock, err := e.volumes.OpenRestore(ctx, options, nil)
	if err != nil {
		return nil, err
	}
	if dead, err := e.inspectIfThere(ctx, r.worker.ID); dead == nil {
		return nil, errors.Join(err, lock.Close())
	}
	undone, err := e.undoCrashed(ctx, r.journal, p)
	if err != nil {
		e.abandon(ctx, lock, r.journal) // its journal says the same as the one that is there
		return nil, err
	}
	after, cancel := cleanup(ctx)
	defer cancel()
	err = errors.Join(lock.Release(after), e.discard(after, r.worker.ID))
	return &Recovery{Container: r.journal.Name, Text: undone}, errors.Join(err, lock.Close())
}

// recoverFrozen thaws what stood still for a snapshot that was not finished. A
// worker for which nothing does is removed, whoever it worked for.
func (e *Engine) recoverFrozen(ctx context.Context, w container.Summary, about []string) (*Recovery, error) {
	frozen, err := volumebackup.FrozenBy(w.Labels)
	if err != nil {
		return nil, err
	}
	isMine := slices.ContainsFunc(about, func(word string) bool {
		return word == "" || slices.Contains(frozen, word) || summaryName(w) == volumebackup.LockName(word)
	})
	if !isMine && len(frozen) > 0 {
		return nil, nil
	}
	if err := e.Thaw(ctx, frozen); err != nil {
		return nil, err
	}
	err = e.docker.ContainerRemove(ctx, w.ID, container.RemoveOptions{Force: true})
	if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
		return nil, fmt.Errorf("remove worker: %w", err)
	}
	if err := e.removeMade(ctx, w); err != nil {
		return nil, err
	}
	if !isMine {
		return nil, nil
	}
	return &Recovery{Container: summaryName(w), Text: "an interrupted operation was cleaned up: " + w.Labels[volumebackup.LabelPurpose]}, nil
}
