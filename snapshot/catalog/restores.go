package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// Restore is that a snapshot was restored: as a copy, or in the place of a container. It is known by what it left: a
// container with labels, the safety snapshot that was taken first, and the session of a run. A copy that is removed is
// forgotten.
type Restore struct {
	Snapshot    labels.ID // that was restored
	At          time.Time
	Container   string    // name
	ContainerID string    // of the container that was made; empty: it is gone, or was restored again
	InPlace     bool      // it took the place of another; else it is a copy
	Safety      labels.ID // the snapshot that takes it back; empty: there is none
	RunID       string    // of the run that the container was in; empty: in none
}

// Traces are where restores are known from.
type Traces struct {
	Snapshots  []Snapshot // safety snapshots, and others, which tell nothing
	Containers []container.Summary
	Sessions   []session.Session
}

// RestoresOf returns the restores of a snapshot that something is left of, the newest first.
func (cat *Catalog) RestoresOf(ctx context.Context, s Snapshot) ([]Restore, error) {
	var t Traces
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		t.Snapshots, err = cat.SafetySnapshots(callsCtx, labels.KeyRestores, string(s.ID))
		return err
	})
	calls.Go(func() (err error) {
		t.Containers, err = cat.RestoredContainers(callsCtx)
		return err
	})
	calls.Go(func() (err error) {
		t.Sessions, err = cat.Sessions(callsCtx)
		return err
	})
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(t.Restores(), func(r Restore) bool { return r.Snapshot != s.ID }), nil
}

// RestoredContainers returns the containers that restores have made.
func (cat *Catalog) RestoredContainers(ctx context.Context) ([]container.Summary, error) {
	all, err := cat.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labels.KeyRestoredFrom))})
	return all, dockerop.Describe(err, "list restored containers")
}

// SafetySnapshots returns the safety snapshots that have a label, the newest first.
func (cat *Catalog) SafetySnapshots(ctx context.Context, key, value string) ([]Snapshot, error) {
	return cat.safetySnapshots(ctx, Namespace+"*", key, value)
}

// SafetySnapshotsOf returns the safety snapshots of a container of that name, the newest first.
func (cat *Catalog) SafetySnapshotsOf(ctx context.Context, name string) ([]Snapshot, error) {
	return cat.safetySnapshots(ctx, Repository(name), labels.KeyTrigger, string(labels.TriggerPreRestore))
}

func (cat *Catalog) safetySnapshots(ctx context.Context, repository, key, value string) ([]Snapshot, error) {
	images, err := cat.imagesLabelled(ctx, repository, key, value)
	if err != nil {
		return nil, fmt.Errorf("look for safety snapshots: %w", err)
	}
	all, _ := decodeAll(images)
	return slices.DeleteFunc(all, func(s Snapshot) bool { return !s.IsSafety() }), nil
}

// Undoable returns the names of the containers that undo can take something back of.
func (cat *Catalog) Undoable(ctx context.Context) ([]Candidate, error) {
	all, err := cat.SafetySnapshots(ctx, labels.KeyTrigger, string(labels.TriggerPreRestore))
	var names []Candidate
	known := map[string]bool{}
	for _, s := range all {
		name := s.Container.Name
		if next := s.Undoes(); !known[name] && next != "" && next != labels.UndoNone {
			names = append(names, Candidate{name, "restored to " + string(s.Restores)})
		}
		known[name] = true
	}
	return names, err
}

// Restores tells which restores there were, the newest first.
func (t Traces) Restores() []Restore {
	var all []Restore
	for _, s := range t.Snapshots {
		if s.IsSafety() {
			all = append(all, Restore{Snapshot: s.Restores, At: s.Created, Container: s.Container.Name, InPlace: true, Safety: s.ID})
		}
	}
	for _, c := range t.Containers {
		all = mergeContainer(all, c)
	}
	for _, run := range t.Sessions {
		for _, r := range run.Restores {
			if r.Status == session.OutcomeRestored {
				all = mergeRun(all, run, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b Restore) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Container, b.Container)) })
	return all
}

// mergeContainer adds what the labels of a container say.
func mergeContainer(all []Restore, c container.Summary) []Restore {
	from, err := labels.ParseID(c.Labels[labels.KeyRestoredFrom])
	if err != nil {
		return all // it was not restored: the label is inherited, or a user's
	}
	at, err := time.Parse(time.RFC3339Nano, c.Labels[labels.KeyRestoredAt])
	if err != nil {
		at = time.Unix(c.Created, 0).UTC()
	}
	r := Restore{Snapshot: from, At: at, Container: dockerop.SummaryName(c), ContainerID: c.ID, InPlace: c.Labels[labels.KeyUndo] != ""}
	if safety, err := labels.ParseID(c.Labels[labels.KeyUndo]); err == nil {
		r.Safety = safety
	}
	known := slices.IndexFunc(all, func(other Restore) bool { return r.Safety != "" && other.Safety == r.Safety })
	if known < 0 {
		return append(all, r)
	}
	all[known] = r
	return all
}

// sameRestore is how far the times may be apart at which a run and the labels of a container say that a restore without a
// safety snapshot was: the run hears of its end.
const sameRestore = 10 * time.Minute

// mergeRun adds what a run knows of a restore of its container.
func mergeRun(all []Restore, run session.Session, r session.Restore) []Restore {
	known := slices.IndexFunc(all, func(other Restore) bool {
		if r.Safety != "" || other.Safety != "" {
			return r.Safety == other.Safety
		}
		return other.InPlace && other.RunID == "" && other.Snapshot == r.Snapshot && other.Container == run.Container && r.At.Sub(other.At).Abs() < sameRestore
	})
	if known < 0 {
		return append(all, Restore{Snapshot: r.Snapshot, At: r.At, Container: run.Container, InPlace: true, Safety: r.Safety, RunID: run.RunID})
	}
	all[known].RunID = run.RunID
	return all
}
