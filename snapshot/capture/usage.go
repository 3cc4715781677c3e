package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Usage has a snapshot taken only when the use of something, such as the context of a model, has reached
// a threshold. All values are parts of a whole: 0.85 is 85 %.
type Usage struct {
	Now        float64
	Thresholds []float64
	Force      bool // take one anyway
}

// Check refuses values that cannot be recorded, or compared with.
func (u Usage) Check() error {
	if err := labels.CheckUsage(u.Now); err != nil {
		return fmt.Errorf("invalid usage: %w", err)
	}
	if len(u.Thresholds) == 0 {
		return errors.New("there is no threshold")
	}
	for _, t := range u.Thresholds {
		if err := labels.CheckUsage(t); err != nil || t == 0 {
			return fmt.Errorf("invalid threshold %v: %w", t, errors.Join(err, errors.New("use a part of the whole, as in 0.85")))
		}
	}
	return nil
}

// usageDecision is what follows from a usage.
type usageDecision struct {
	take   bool
	fell   bool   // this has to be remembered: usage is below a threshold again that it had reached
	reason string // why none is taken
}

// decide tells whether a snapshot is due. last is the record of the last one that was taken because of a
// threshold, or nil. What that had reached counts as reached until usage has fallen below it.
func (u Usage) decide(last *labels.Record) usageDecision {
	reached := -1.0
	if last != nil && last.Usage != nil {
		reached = *last.Usage
		if last.UsageLow != nil {
			reached = min(reached, *last.UsageLow)
		}
	}
	is := func(test func(t float64) bool) bool { return slices.ContainsFunc(u.Thresholds, test) }
	switch lowest := slices.Min(u.Thresholds); {
	case u.Force, is(func(t float64) bool { return reached < t && t <= u.Now }):
		return usageDecision{take: true}
	case u.Now < lowest:
		return usageDecision{
			fell:   is(func(t float64) bool { return u.Now < t && t <= reached }),
			reason: fmt.Sprintf("usage %v is below the threshold %v", u.Now, lowest),
		}
	default:
		return usageDecision{
			fell:   is(func(t float64) bool { return u.Now < t && t <= reached }),
			reason: fmt.Sprintf("usage %v has reached no threshold that snapshot %s had not reached", u.Now, last.ID),
		}
	}
}

// decide tells whether a snapshot of a container or line is due, and which the last of a threshold is.
func (cr *Capturer) decide(ctx context.Context, name string, o Options) (usageDecision, *catalog.Snapshot, error) {
	last, err := cr.catalog.LastOfUsage(ctx, name, o.RunID)
	if err != nil {
		return usageDecision{}, nil, err
	}
	var record *labels.Record
	if last != nil {
		record = &last.Record
	}
	return o.Usage.decide(record), last, nil
}

// NotDueError says that no snapshot is due by the usage in the options any more, because another request
// took one of the same threshold. It is no failure.
type NotDueError struct{ Reason string }

func (e *NotDueError) Error() string { return e.Reason }

// checkDue fails with [NotDueError] if no snapshot is due. A fall that it finds is nothing to remember: at
// the same time the other request has found usage higher.
func (cr *Capturer) checkDue(ctx context.Context, name string, o Options) error {
	if o.Usage == nil || o.Usage.Force {
		return nil
	}
	d, _, err := cr.decide(ctx, name, o)
	if err == nil && !d.take {
		err = &NotDueError{Reason: d.reason}
	}
	return err
}

// Skip tells why no snapshot is taken; empty: one is, unless another request takes one first. Calls that are skipped leave nothing, with one
// exception: the first that finds usage below a threshold again marks the last snapshot with that, so
// that the next one is taken when the threshold is reached once more.
func (cr *Capturer) Skip(ctx context.Context, o Options, p plan.Progress) (reason string, err error) {
	if o.Usage == nil || o.Usage.Force {
		return "", nil
	}
	name := o.Line
	if name == "" {
		c, _, err := cr.docker.ContainerInspectWithRaw(ctx, o.Container, false)
		if err != nil {
			return "", dockerop.AsNoContainer(err)
		}
		name = dockerop.ContainerName(c)
	}
	if err := cr.checkOnce(ctx, name, o.IdempotencyKey); err != nil {
		if _, made := errors.AsType[*MadeError](err); made {
			return "", nil // this very request took one: it has the same answer again
		}
		return "", err
	}
	d, last, err := cr.decide(ctx, name, o)
	if err != nil {
		return "", err
	}
	if d.fell {
		a := Annotation{Snapshot: catalog.TagOf(name, string(last.ID)).String(), usageLow: &o.Usage.Now}
		if _, err := cr.Annotate(ctx, a, p); err != nil {
			return "", err
		}
	}
	return d.reason, nil
}
