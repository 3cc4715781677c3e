package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// sessionTag is the only tag in the repository of a run.
const sessionTag = "session"

// SessionRef returns the name of the image that keeps the session of a run. No two runs share one.
func SessionRef(runID string) string {
	return Tag{sessionNamespace + repositoryName(runID), sessionTag}.String()
}

// RunNotFoundError says that there is no session of a run. It is an errdefs not-found error.
type RunNotFoundError struct{ RunID string }

func (e *RunNotFoundError) Error() string { return "no such run: " + e.RunID }

// Unwrap gives the error its class.
func (e *RunNotFoundError) Unwrap() error { return cerrdefs.ErrNotFound }

// KeptSession is a session, and the image that keeps it.
type KeptSession struct {
	session.Session
	ImageID      string
	Architecture string // of the image
}

// Session returns the session of a run. It fails with [RunNotFoundError] if there is none.
func (cat *Catalog) Session(ctx context.Context, runID string) (KeptSession, error) {
	if err := session.CheckRunID(runID); err != nil {
		return KeptSession{}, err
	}
	ref := SessionRef(runID)
	found, err := cat.docker.ImageInspect(ctx, ref)
	if cerrdefs.IsNotFound(err) {
		return KeptSession{}, &RunNotFoundError{RunID: runID}
	}
	if err != nil {
		return KeptSession{}, fmt.Errorf("inspect image %s: %w", ref, err)
	}
	if found.Config == nil || found.Config.Labels[labels.KeySession] == "" {
		return KeptSession{}, fmt.Errorf("image %s keeps no session: %w", ref, &RunNotFoundError{RunID: runID})
	}
	s, err := session.Decode(found.Config.Labels[labels.KeySession])
	if err == nil && s.RunID != runID {
		err = fmt.Errorf("it is of run %s", s.RunID)
	}
	if err != nil {
		return KeptSession{}, fmt.Errorf("image %s: %w", ref, err)
	}
	return KeptSession{s, found.ID, found.Architecture}, nil
}

// Sessions returns the sessions of all runs, the newest first. It passes over images that keep none.
// While a session is written, the list may lack it.
func (cat *Catalog) Sessions(ctx context.Context) ([]session.Session, error) {
	images, err := cat.docker.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", sessionNamespace+"*"))})
	if err != nil {
		return nil, dockerop.Describe(err, "list the sessions of runs")
	}
	var all []session.Session
	for _, summary := range images {
		s, err := session.Decode(summary.Labels[labels.KeySession])
		if err == nil && slices.Contains(summary.RepoTags, SessionRef(s.RunID)) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b session.Session) int { return b.Started.Compare(a.Started) })
	return all, nil
}

// ofRun returns a snapshot of a run: by its number, or, if that is negative, counted from the last of
// those that still exist. word is what the user wrote.
func (cat *Catalog) ofRun(ctx context.Context, word, runID string, number int) (Snapshot, error) {
	kept, err := cat.Session(ctx, runID)
	if _, none := errors.AsType[*RunNotFoundError](err); none {
		return Snapshot{}, &NotFoundError{Word: word, Reason: fmt.Sprintf("no such snapshot: %s: there is no run %s", word, runID)}
	}
	if err != nil {
		return Snapshot{}, err
	}
	for _, one := range slices.Backward(kept.Snapshots) {
		if number >= 0 && one.Number != number {
			continue
		}
		s, err := cat.Lookup(ctx, word, TagOf(one.Container, string(one.ID)))
		switch {
		case err == nil && (number >= 0 || number == -1):
			return s, nil
		case err == nil:
			number++
		case number >= 0 && cerrdefs.IsNotFound(err):
			return Snapshot{}, &NotFoundError{Word: word, Reason: fmt.Sprintf("snapshot %d of run %s, %s, was removed", number, runID, one.ID)}
		case !cerrdefs.IsNotFound(err):
			return Snapshot{}, err
		}
	}
	return Snapshot{}, &NotFoundError{Word: word, Reason: fmt.Sprintf("no such snapshot: %s: run %s has taken %d", word, runID, len(kept.Snapshots))}
}
