package dockerop

import (
	"context"
	"sync"
)

// Ahead is what is asked of the engine beside everything else, before the answers
// are needed.
type Ahead struct {
	Ctx    context.Context //nolint:containedctx // of the operation, which outlives its steps
	Engine func() (Info, error)
}

// AskAhead asks the engine who it is. One with the containerd image store takes
// longer for that than for all else that has to be known, so it is asked first.
func (e *Engine) AskAhead(ctx context.Context) Ahead {
	type answer struct {
		info Info
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		info, err := e.Identify(ctx)
		answered <- answer{info, err}
	}()
	return Ahead{Ctx: ctx, Engine: sync.OnceValues(func() (Info, error) {
		a := <-answered
		return a.info, a.err
	})}
}
