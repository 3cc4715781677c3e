package copies

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// newOperation returns a random name for a restore, for the labels on what it makes.
func (cp *Copier) newOperation() (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(cp.random, b[:]); err != nil {
		return "", fmt.Errorf("name the operation: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// removeOwnVolume removes a volume that the operation has made. It leaves a volume without the
// operation's label, which is somebody else's, and one that somebody mounts.
func (cp *Copier) removeOwnVolume(ctx context.Context, name, operation string) error {
	v, err := cp.docker.VolumeInspect(ctx, name)
	if err == nil && v.Labels[labels.KeyOperation] == operation {
		err = cp.docker.VolumeRemove(ctx, name, false)
	}
	if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
		return fmt.Errorf("remove volume %s: %w", name, err)
	}
	return nil
}

// checkOwnVolumes makes sure that the operation has made the volumes. If one of that name existed,
// the engine will have used that instead.
func (cp *Copier) checkOwnVolumes(ctx context.Context, names []string, operation string) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(dockerop.MaxConcurrentCalls)
	for _, name := range names {
		calls.Go(func() error {
			v, err := cp.docker.VolumeInspect(ctx, name)
			if err != nil {
				return fmt.Errorf("inspect volume %s: %w", name, err)
			}
			if v.Labels[labels.KeyOperation] != operation {
				return fmt.Errorf("create volume %s: a volume of that name exists already", name)
			}
			return nil
		})
	}
	return calls.Wait()
}

// ClearCopies removes what killed restores have left. A failure is only a warning: it prevents no
// restore.
func (cp *Copier) ClearCopies(ctx context.Context, p plan.Progress) {
	var workers []pending.Worker
	var calls errgroup.Group
	calls.Go(func() (err error) {
		_, err = cp.RemoveUnfinished(ctx, "", UnfinishedAge)
		return err
	})
	calls.Go(func() (err error) {
		workers, err = cp.pending.Workers(ctx, volumebackup.LabelPurpose)
		return err
	})
	err := calls.Wait()
	cp.pending.ClearDead(ctx, workers, p) // nobody can remove a volume that they mount
	for _, w := range workers {
		if _, made := w.Labels[pending.LabelMade]; made && !w.Alive && !pending.HoldsNothing(w) {
			err = errors.Join(err, cp.Clear(ctx, w))
		}
	}
	if err != nil && ctx.Err() == nil {
		p.Warn("check", fmt.Sprintf("leftovers of an interrupted restore could not be removed: %v", err))
	}
}

// Clear thaws what a dead worker left frozen, and removes the worker and what its restore made.
func (cp *Copier) Clear(ctx context.Context, w pending.Worker) error {
	made, madeErr := halfMadeBy(w.Summary)
	if made != nil && made.Together { // while the journal is there
		if err := cp.removeTogether(ctx, w.ID, made.Operation); err != nil {
			return err
		}
	}
	if err := cp.pending.Clear(ctx, w); err != nil {
		return err
	}
	if made == nil {
		return madeErr
	}
	return cp.removeMade(ctx, *made)
}

// halfMadeBy returns what a dead worker's label says that its restore has made, or nil if the restore
// was over.
func halfMadeBy(worker container.Summary) (*pending.HalfMade, error) {
	text, ok := worker.Labels[pending.LabelMade]
	if !ok || volumebackup.IsSettled(dockerop.SummaryName(worker)) {
		return nil, nil
	}
	var made pending.HalfMade
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		return nil, fmt.Errorf("read journal %.200q: %w", text, err)
	}
	if made.Operation == "" {
		return nil, fmt.Errorf("read journal %.200q: it names no operation", text)
	}
	return &made, nil
}

// removeMade removes what an interrupted restore has made.
func (cp *Copier) removeMade(ctx context.Context, made pending.HalfMade) error {
	_, err := cp.RemoveUnfinished(ctx, made.Operation, 0)
	for _, name := range made.Volumes {
		err = errors.Join(err, cp.removeOwnVolume(ctx, name, made.Operation))
	}
	return errors.Join(err, cp.docker.RemoveVolumes(ctx, slices.DeleteFunc(made.Anonymous, func(name string) bool { return !runconfig.IsAnonymousName(name) })))
}

// UnfinishedAge is how old an unfinished copy must be to count as abandoned, if no worker is
// filling its volumes.
const UnfinishedAge = time.Minute

// unfinishedName returns the name of a copy that is not to be started, for as long as its volumes
// are not filled. Nothing else distinguishes it from a finished one.
func unfinishedName(name, operation string) string {
	return name + "-unfinished-" + copySuffix(operation)
}

// madeBy returns the operation that made a container, and the label that says so, if the container
// is a copy that was never finished.
func madeBy(c container.Summary) (operation, key string) {
	if operation := c.Labels[labels.KeyOperation]; operation != "" {
		return operation, labels.KeyOperation
	}
	operation = c.Labels[labels.KeyFilledBy]
	if len(operation) >= suffixDigits && strings.HasSuffix(dockerop.SummaryName(c), unfinishedName("", operation)) {
		return operation, labels.KeyFilledBy
	}
	return "", ""
}

// RemoveUnfinished removes copies that were never finished: those that were to be started and never
// were, and those that still have their [unfinishedName]. It removes those of one operation, or of
// all if operation is empty, that are at least age old, and returns their names.
func (cp *Copier) RemoveUnfinished(ctx context.Context, operation string, age time.Duration) (removed []string, err error) {
	found, err := cp.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("status", container.StateCreated))})
	if err != nil {
		return nil, dockerop.Describe(err, "list copies")
	}
	found = slices.DeleteFunc(found, func(c container.Summary) bool {
		made, _ := madeBy(c)
		return made == "" || operation != "" && made != operation
	})
	if len(found) == 0 {
		return nil, nil
	}
	now, err := cp.docker.Time(ctx)
	if err != nil {
		return nil, err
	}
	filling := map[string]bool{}
	if operation == "" { // otherwise the operation's worker is known to be dead
		if filling, err = cp.fillingOperations(ctx); err != nil {
			return nil, err
		}
	}
	for _, c := range found {
		made, key := madeBy(c)
		isOwn, ownErr := cp.isLabelledItself(ctx, c, key)
		if err = errors.Join(err, ownErr); !isOwn || filling[made] || now.Sub(time.Unix(c.Created, 0)) < age {
			continue
		}
		if removeErr := cp.docker.RemoveContainer(ctx, c.ID); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("remove container %s: %w", dockerop.SummaryName(c), removeErr))
			continue
		}
		removed = append(removed, dockerop.SummaryName(c))
	}
	return removed, err
}

// fillingOperations returns the operations for which a worker is filling volumes.
func (cp *Copier) fillingOperations(ctx context.Context) (map[string]bool, error) {
	workers, err := cp.pending.Workers(ctx, pending.LabelMade)
	filling := map[string]bool{}
	for _, w := range workers {
		var made pending.HalfMade
		if w.Alive && json.Unmarshal([]byte(w.Labels[pending.LabelMade]), &made) == nil {
			filling[made.Operation] = true
		}
	}
	return filling, err
}

// isLabelledItself tells whether a container has a label of its own, rather than from its image.
func (cp *Copier) isLabelledItself(ctx context.Context, c container.Summary, key string) (bool, error) {
	value := c.Labels[key]
	if value == "" {
		return false, nil
	}
	image, err := cp.docker.ImageInspect(ctx, c.ImageID)
	if err != nil || image.Config == nil {
		return false, dockerop.Describe(err, "inspect image of container "+dockerop.SummaryName(c))
	}
	return image.Config.Labels[key] != value, nil
}
