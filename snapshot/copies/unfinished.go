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
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
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
	return cp.removeVolumeIf(ctx, name, func(v volume.Volume) bool { return v.Labels[labels.KeyOperation] == operation })
}

// removeNewVolume is [Copier.removeOwnVolume] for a name that this process has made up. It also removes what the engine has left
// that was killed while it made the volume. A name from a journal is not to be trusted that far: anybody can write one.
func (cp *Copier) removeNewVolume(ctx context.Context, name, operation string) error {
	return cp.removeVolumeIf(ctx, name, func(v volume.Volume) bool {
		return v.Labels[labels.KeyOperation] == operation || dockerop.IsUnlabelled(v)
	})
}

func (cp *Copier) removeVolumeIf(ctx context.Context, name string, isOwn func(volume.Volume) bool) error {
	v, err := cp.docker.VolumeInspect(ctx, name)
	if err == nil && isOwn(v) {
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

// RemoveAbandoned removes copies that were never finished and of whose restore there is no worker, not even a dead one, which
// [Copier.Clear] is for: those that were to be started and never were, and those that still have their [unfinishedName].
// They must be [UnfinishedAge] old. The workers must have been listed before. It returns the names of the copies.
func (cp *Copier) RemoveAbandoned(ctx context.Context, workers []pending.Worker) (removed []string, err error) {
	known := operationsOf(workers)
	return cp.removeUnfinished(ctx, UnfinishedAge, func(operation string) bool { return !known[operation] })
}

// removeUnfinished removes the copies of these operations that were never finished and are at least age old.
func (cp *Copier) removeUnfinished(ctx context.Context, age time.Duration, isMeant func(operation string) bool) (removed []string, err error) {
	found, err := cp.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("status", container.StateCreated))})
	if err != nil {
		return nil, dockerop.Describe(err, "list copies")
	}
	found = slices.DeleteFunc(found, func(c container.Summary) bool {
		operation, _ := madeBy(c)
		return operation == "" || !isMeant(operation)
	})
	if len(found) == 0 {
		return nil, nil
	}
	now, err := cp.docker.Time(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		_, key := madeBy(c)
		isOwn, ownErr := cp.isLabelledItself(ctx, c, key)
		if err = errors.Join(err, ownErr); !isOwn || now.Sub(time.Unix(c.Created, 0)) < age {
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

// operationsOf returns the operations of which these workers make copies, or did.
func operationsOf(workers []pending.Worker) map[string]bool {
	operations := map[string]bool{}
	for _, w := range workers {
		var made pending.HalfMade
		if json.Unmarshal([]byte(w.Labels[pending.LabelMade]), &made) == nil {
			operations[made.Operation] = true
		}
	}
	return operations
}

// fillingOperations returns the operations for which a worker is filling volumes.
func (cp *Copier) fillingOperations(ctx context.Context) (map[string]bool, error) {
	workers, err := cp.pending.Workers(ctx, pending.LabelMade)
	return operationsOf(slices.DeleteFunc(workers, func(w pending.Worker) bool { return !w.Alive })), err
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
