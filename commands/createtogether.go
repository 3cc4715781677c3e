package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/docker/cli/opts"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

func (o *createOptions) addTogetherFlags(flags *pflag.FlagSet) {
	flags.Var(opts.NewListOptsRef(&o.with, checkWord(checkContainer)), "with", "Take one of this container, too, at the same moment: all are taken, or none (may be repeated)")
}

// ofOneSnapshot are the options of create that are about a single snapshot.
var ofOneSnapshot = []string{"state-only", "run-id", "step-id", "idempotency-key", "if-usage", "attach", "changes"}

// checkTogether refuses options that do not go with snapshots of several containers.
func (o *createOptions) checkTogether(flags *pflag.FlagSet) error {
	if len(o.with) == 0 {
		return nil
	}
	for _, name := range ofOneSnapshot {
		if flags.Changed(name) {
			return fmt.Errorf("conflicting options: --with and --%s", name)
		}
	}
	return nil
}

// takeTogether takes a snapshot of each of the containers.
func (o *createOptions) takeTogether(ctx context.Context, d deps, eng engine, p plan.Progress) ([]capture.Created, error) {
	containers := slices.Concat([]string{o.engine.Container}, o.with)
	return withServices(ctx, d, eng, containers, func(containers []string) ([]capture.Created, error) {
		all := make([]capture.Options, len(containers))
		warnings := make([]limitWarning, len(containers))
		for i, container := range containers {
			all[i] = o.engine
			all[i].Container = container
			warnings[i] = d.countAside(ctx, eng, all[i])
		}
		p := d.advised(p)
		created, err := eng.CreateTogether(ctx, all, p)
		for i, one := range created {
			warnings[i](one.Snapshot, p)
		}
		return created, err
	})
}
