package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// defaultKeep is how many automatic states of a line are kept.
const defaultKeep = 5

// stateOptions are the options of create for a state.
type stateOptions struct {
	only bool
	keep int
}

func (o *createOptions) addStateFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.state.only, "state-only", false, "Take a state: what is attached, and no container")
	flags.StringVar(&o.engine.Line, "line", "", "Name the line of states that it belongs to")
	flags.IntVar(&o.state.keep, "keep", defaultKeep, "Keep this many automatic states of the line; 0: all")
}

// ofContainers are the options that are only about containers.
func ofContainers() []string {
	return []string{
		"pause", "no-pause", "no-volumes", "volume", "exclude-volume", "pre-exec", "post-exec", "hook-timeout", "hook-on-error",
	}
}

// check refuses options that do not go together.
func (o *stateOptions) check(flags *pflag.FlagSet, line string) error {
	if !o.only {
		for _, name := range []string{"line", "keep"} {
			if flags.Changed(name) {
				return fmt.Errorf("--%s is for states only: use --state-only", name)
			}
		}
		return nil
	}
	for _, name := range ofContainers() {
		if flags.Changed(name) {
			return fmt.Errorf("conflicting options: --state-only and --%s", name)
		}
	}
	if line == "" {
		return errors.New("--state-only needs a --line")
	}
	if o.keep < 0 {
		return errors.New("invalid --keep: it is negative")
	}
	return labels.CheckLine(line)
}

// tidyLine removes what is beyond --keep, once the result is out. That the new state is there counts,
// so a failure is a warning.
func (o *createOptions) tidyLine(ctx context.Context, d deps, s catalog.Snapshot) {
	if s.Kind != labels.KindState || s.Trigger == labels.TriggerManual || o.state.keep == 0 {
		return
	}
	_, _ = call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (struct{}, error) {
		if err := eng.KeepLast(ctx, s.Line, o.state.keep, p); err != nil {
			p.Warn("keep", fmt.Sprintf("older states of line %s were not removed: %v", s.Line, err))
		}
		return struct{}{}, nil
	})
}

// take takes the snapshots that the options ask for.
func (o *createOptions) take(ctx context.Context, d deps, eng engine, p plan.Progress) ([]capture.Created, error) {
	if len(o.with) > 0 {
		return o.takeTogether(ctx, d, eng, p)
	}
	created, err := o.takeOne(ctx, d, eng, p)
	if err != nil {
		return nil, err
	}
	return []capture.Created{created}, nil
}

func (o *createOptions) takeOne(ctx context.Context, d deps, eng engine, p plan.Progress) (capture.Created, error) {
	if o.state.only {
		return eng.Create(ctx, o.engine, d.advised(p))
	}
	return withService(ctx, d, eng, o.engine.Container, func(container string) (capture.Created, error) {
		o.engine.Container = container
		p := d.advised(p)
		warnOfLimit := d.countAside(ctx, eng, o.engine)
		created, err := eng.Create(ctx, o.engine, p)
		if err == nil && created.Skipped == "" {
			warnOfLimit(created.Snapshot, p)
		}
		return created, err
	})
}
