package snapshot

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// stuckPatience is how long a container is observed before its engine may be stuck with it. That takes
// a tenth of a second.
const stuckPatience = 10 * time.Second

// helpIfStuck waits until done is closed. If that takes long, somebody else's pause may have left the
// engine stuck with the container: then it gets the engine to go on, and the container stays paused.
func (e *Engine) helpIfStuck(ctx context.Context, done <-chan struct{}, word string, p plan.Progress) {
	timer := time.NewTimer(stuckPatience)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	id := e.idOf(ctx, word)
	workers, err := e.pending.Workers(ctx, volumebackup.LabelPurpose)
	if id == "" || err != nil || len(pending.FreezersOf(workers, []string{id}, true)) > 0 {
		return // who has frozen it helps the engine, too
	}
	p.Status("inspect", "the engine does not say what container "+word+" is: helping it to go on")
	if err := e.docker.HelpToAnswer(ctx, id); err != nil && ctx.Err() == nil {
		p.Warn("inspect", "the engine seems to be stuck with container "+word+", and could not be helped: "+err.Error())
	}
}

// idOf returns the ID of a container, also of one that the engine is stuck with. It is empty if there is none.
func (e *Engine) idOf(ctx context.Context, word string) string {
	all, err := e.docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return ""
	}
	at := slices.IndexFunc(all, func(c container.Summary) bool {
		return slices.Contains(c.Names, "/"+strings.TrimPrefix(word, "/")) || c.ID == word
	})
	if at < 0 {
		return ""
	}
	return all[at].ID
}
