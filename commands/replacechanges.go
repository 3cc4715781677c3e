package commands

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// showsChanges tells whether the result of a restore in place says what changed. A plan always does.
func (o *restoreOptions) showsChanges() bool {
	return o.engine.DryRun || o.files || o.printer.shows("Changes")
}

// whole matches what shows a whole result in a template.
var whole = regexp.MustCompile(`\.([^A-Za-z_]|$)`)

// shows tells whether a result in this format shows a field.
func (p printer) shows(field string) bool {
	if p.template == nil {
		return p.formats()
	}
	return strings.Contains(p.format, "."+field) || whole.MatchString(p.format)
}

// differences are what is compared to find out what a restore in place changes: the snapshot with what there is or, once
// that is gone, with the safety snapshot of it. What the restore leaves as it is does not count.
func (o *restoreOptions) differences(r replace.Result) diff.Options {
	d := diff.Options{Old: r.Snapshot.Word(), New: r.Old, Left: r.Old == "" || r.Keeps, Reverse: true, Paths: o.engine.Paths}
	if r.Safety != nil {
		d.New = r.Safety.Word()
	}
	d.Lost = r.Snapshot.ImageID == ""
	for _, v := range r.Volumes {
		if v.Kept != "" {
			d.Without = append(d.Without, v.Volume)
		}
	}
	return d
}

// changeSource hands changes to visit.
type changeSource func(eng engine, p plan.Progress, visit func(diff.Change)) error

// compared are the changes that a comparison finds.
func compared(ctx context.Context, o diff.Options) changeSource {
	return func(eng engine, p plan.Progress, visit func(diff.Change)) error { return eng.Diff(ctx, o, p, visit) }
}

// changesBefore finds out what a restore in place will change if no safety snapshot is to tell that afterwards.
func (o *restoreOptions) changesBefore(ctx context.Context, d deps, planned replace.Result, warned *warningList) (changeSource, error) {
	return call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (changeSource, error) {
		var found []diff.Change
		p = warned.from(p)
		if err := eng.Diff(ctx, o.differences(planned), p, func(c diff.Change) { found = append(found, c) }); err != nil {
			return nil, fmt.Errorf("find out what would change: %w", err)
		}
		return func(_ engine, _ plan.Progress, visit func(diff.Change)) error {
			for _, c := range found {
				visit(c)
			}
			return nil
		}, nil
	})
}

// changesOf shows on out what a restore in place changed, or returns it if results are formatted. What is restored is
// restored: whatever goes wrong here is a warning.
func (o *restoreOptions) changesOf(d deps, from changeSource, out io.Writer, warned *warningList) *changeReport {
	list := changeList{out: out, files: o.files, keep: o.printer.formats()}
	err := list.fill(d, o.volumes, o.progress, func(eng engine, p plan.Progress, visit func(diff.Change)) error {
		p = warned.from(p)
		err := from(eng, p, visit)
		if err != nil {
			p.Warn("compare", "what changes is not known: "+explain(err))
		}
		return err
	})
	if err != nil || !list.keep {
		return nil
	}
	return list.report()
}
