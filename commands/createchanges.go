package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// changesOptions are the options of create about what changed since the parent of the new snapshot.
type changesOptions struct {
	wanted bool
	files  bool
}

func (o *createOptions) addChangesFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.changes.wanted, "changes", false, "Show what changed since its parent, the snapshot before it")
	flags.BoolVar(&o.changes.files, "files", false, "With --changes: show each file that changed, and not only how many")
}

func (o changesOptions) check(stateOnly bool) error {
	switch {
	case o.files && !o.wanted:
		return errors.New("--files needs --changes")
	case o.wanted && stateOnly:
		return errors.New("conflicting options: --changes and --state-only: a state has no files")
	}
	return nil
}

// compare finds out what changed since the parent of a new snapshot. It shows that on stderr or, for a result in a format,
// returns it. The snapshot is made: whatever goes wrong here is a warning.
func (o *createOptions) compare(ctx context.Context, d deps, made catalog.Snapshot, warned *warningList) *changeReport {
	list := changeList{out: d.err, files: o.changes.files, keep: o.printer.formats()}
	switch {
	case !o.changes.wanted:
		return nil
	case made.Parent == "" && list.keep:
		return nil // the result says that there is no parent
	case made.Parent == "":
		_ = writeLine(d.err, "nothing to compare with: the snapshot has no parent")
		return nil
	}
	err := list.fill(d, o.volumes, o.progress, func(eng engine, p plan.Progress, visit func(diff.Change)) error {
		p = warned.from(p)
		err := eng.Diff(ctx, diff.Options{Old: string(made.Parent), New: made.Word()}, p, visit)
		if err != nil {
			p.Warn("compare", fmt.Sprintf("what changed since snapshot %s is not known: %s", made.Parent, explain(err)))
		}
		return err
	})
	if err != nil || !list.keep {
		return nil
	}
	return list.report()
}
