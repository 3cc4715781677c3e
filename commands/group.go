package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// checkGroup refuses options that do not go with a whole group.
func (o *restoreOptions) checkGroup(flags *pflag.FlagSet) error {
	if !o.group {
		return nil
	}
	if !o.replace {
		return errors.New("--group goes with --replace")
	}
	if len(o.others) > 0 {
		return errors.New("--group takes one snapshot, and finds those that were taken together with it")
	}
	for _, name := range ofOneContainer {
		if flags.Changed(name) {
			return fmt.Errorf("conflicting options: --group and --%s, which is for one snapshot", name)
		}
	}
	return nil
}

// addGroup adds the snapshots that were taken together with the named one.
func (o *restoreOptions) addGroup(ctx context.Context, d deps) error {
	all, err := call(d, o.volumes, o.progress, func(eng engine, _ plan.Progress) ([]catalog.Snapshot, error) {
		return withSnapshot(ctx, d, eng, o.engine.Snapshot, func(word string) ([]catalog.Snapshot, error) {
			s, err := eng.Resolve(ctx, word)
			if err != nil {
				return nil, err
			}
			others, err := eng.TakenWith(ctx, s)
			return append([]catalog.Snapshot{s}, others...), err
		})
	})
	if err != nil {
		return err
	}
	if len(all) == 1 {
		return fmt.Errorf("snapshot %s was not taken together with one of another container: leave out --group", all[0].Title())
	}
	words := convert(all, catalog.Snapshot.Word)
	o.engine.Snapshot, o.others = words[0], words[1:]
	return nil
}

// noteGroup names the containers that were captured together with the restored ones, and did not go back.
func (d deps) noteGroup(ctx context.Context, eng engine, p plan.Progress, all ...replace.Result) {
	var left []string
	for _, r := range all {
		if r.Snapshot.Group == "" || r.Copy != "" {
			continue
		}
		others, err := eng.TakenWith(ctx, r.Snapshot)
		if err != nil {
			p.Warn("done", explain(err))
			return
		}
		for _, other := range others {
			name := other.Container.Name
			isBack := slices.ContainsFunc(all, func(r replace.Result) bool { return r.Snapshot.Container.Name == name })
			if !isBack && !slices.Contains(left, name) {
				left = append(left, name)
			}
		}
	}
	if len(left) == 0 {
		return
	}
	verb := "stays as it is"
	if len(left) > 1 {
		verb = "stay as they are"
	}
	p.Note("done", fmt.Sprintf("%s, captured together with %s, %s now: restore --replace --group brings all of them back", enumerate(left), all[0].Snapshot.Container.Name, verb))
}
