package replace

import (
	"context"
	"fmt"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Each restore in place that took a safety snapshot can be taken back. The safety snapshots of a container form a list, linked by
// [labels.Scope.Next]: the one that undo restores next comes first, as in an editor. A restore adds its own in front, and an undo
// removes the first.

// NoUndoError says that a container has no restore in place that can be taken back. It is an errdefs not-found error.
type NoUndoError struct {
	Container string
	Reason    string
}

func (e *NoUndoError) Error() string { return "nothing to undo: " + e.Reason }

// Unwrap gives the error its class.
func (e *NoUndoError) Unwrap() error { return cerrdefs.ErrNotFound }

// FindUndo returns the options of a restore in place that takes back the last one of a container: of all containers that were
// restored together with it.
func (rp *Replacer) FindUndo(ctx context.Context, name string) ([]Options, error) {
	first, err := rp.findUndone(ctx, name)
	if err != nil {
		return nil, err
	}
	all := []Options{undoOptions(first, name)}
	if first.Group == "" {
		return all, nil
	}
	images, err := rp.catalog.SafetySnapshots(ctx, labels.KeyGroup, first.Group)
	if err != nil {
		return nil, err
	}
	for _, s := range images {
		if s.ID == first.ID {
			continue
		}
		other, err := rp.findUndone(ctx, s.Container.Name)
		if err != nil {
			return nil, fmt.Errorf("%s was restored together with %s: %w", name, s.Container.Name, err)
		}
		if other.ID != s.ID {
			return nil, &NoUndoError{Container: name, Reason: fmt.Sprintf(
				"%s was restored together with %s, which was restored again since: undo that first", name, s.Container.Name)}
		}
		all = append(all, undoOptions(s, s.Container.Name))
	}
	return all, nil
}

// undoOptions are the options of the restore that takes another one back.
func undoOptions(s catalog.Snapshot, name string) Options {
	o := Options{Undoes: &s}
	o.Snapshot = string(s.ID)
	if s.Scope != nil {
		o.Only, o.Paths, o.ReadOnly = s.Scope.Only, s.Scope.Paths, s.Scope.ReadOnly
		o.Live, o.StopOthers = s.Scope.Live, s.Scope.StopOthers
	}
	if name != s.Container.Name {
		o.Name = name
	}
	return o
}

// findUndone returns the safety snapshot of the restore that undo takes back next.
func (rp *Replacer) findUndone(ctx context.Context, name string) (catalog.Snapshot, error) {
	c, err := rp.docker.InspectIfThere(ctx, name)
	if err != nil {
		return catalog.Snapshot{}, err
	}
	next, all, err := rp.nextUndo(ctx, name, c)
	if err != nil {
		return catalog.Snapshot{}, err
	}
	none := &NoUndoError{Container: name}
	switch {
	case next == "" && len(all) == 0:
		none.Reason = fmt.Sprintf("container %s was not restored in place", name)
		return catalog.Snapshot{}, none
	case next == "":
		none.Reason = fmt.Sprintf("every restore in place of container %s is taken back already", name)
		return catalog.Snapshot{}, none
	case next == labels.UndoNone:
		none.Reason = fmt.Sprintf("the last restore in place of container %s took no safety snapshot", name)
		return catalog.Snapshot{}, none
	}
	if at := slices.IndexFunc(all, func(s catalog.Snapshot) bool { return string(s.ID) == next }); at >= 0 {
		return all[at], nil
	}
	s, err := rp.catalog.Resolve(ctx, next)
	if cerrdefs.IsNotFound(err) {
		none.Reason = fmt.Sprintf("the safety snapshot of the last restore in place of container %s was removed: %s", name, next)
		return catalog.Snapshot{}, none
	}
	return s, err
}

// nextUndo returns the ID of the safety snapshot that undo restores next, as [labels.Record.Undoes] does, and the safety snapshots
// of the container's name. old is nil if the container is gone.
func (rp *Replacer) nextUndo(ctx context.Context, name string, old *container.InspectResponse) (next string, all []catalog.Snapshot, err error) {
	if old != nil {
		name = dockerop.ContainerName(*old)
	}
	all, err = rp.catalog.SafetySnapshotsOf(ctx, name)
	if err != nil {
		return "", nil, err
	}
	var last time.Time
	if len(all) > 0 { // the newest is the first
		next, last = all[0].Undoes(), all[0].Created
	}
	if old == nil {
		return next, all, nil
	}
	undo, at := old.Config.Labels[labels.KeyUndo], dockerop.TimeOf(old.Config.Labels[labels.KeyRestoredAt])
	if undo == "" || !at.After(last) || slices.ContainsFunc(all, func(s catalog.Snapshot) bool { return string(s.ID) == undo }) {
		return next, all, nil
	}
	if undo == labels.UndoNone {
		return undo, all, nil
	}
	s, err := rp.catalog.Resolve(ctx, undo) // taken while the container had another name
	if cerrdefs.IsNotFound(err) {
		return undo, all, nil
	}
	return s.Undoes(), append(all, s), err
}

// undoScope says what a restore puts back, and how undo goes on once it is taken back.
func (t *transaction) undoScope(ctx context.Context, m *member) (*labels.Scope, error) {
	o := m.options
	s := &labels.Scope{Only: o.Only, Paths: o.Paths, ReadOnly: o.ReadOnly, Live: o.Live, StopOthers: o.StopOthers}
	if o.Lost && len(o.Only) == 0 {
		s.Only = m.written() // nothing else goes back
	}
	if o.Undoes != nil {
		s.Undo = true
		if o.Undoes.Scope != nil {
			s.Next = o.Undoes.Scope.Next
		}
		return s, nil
	}
	var err error
	s.Next, _, err = t.engine.nextUndo(ctx, m.Name, m.Old)
	return s, err
}
