package snapshot

import (
	"context"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
)

// DrillOptions says which snapshots are restored for a drill, and how long their copies are watched.
type DrillOptions struct {
	verify.Options
	runconfig.Waiting
}

// Drill verifies snapshots, and rehearses the restore of those that are whole: it makes a copy without
// network, compares its volumes with what was captured, starts it if it ran, and removes it.
func (e *Engine) Drill(ctx context.Context, o DrillOptions, p plan.Progress) (verify.Report, error) {
	report, err := e.verify.Verify(ctx, o.Options, p)
	if err != nil {
		return verify.Report{}, err
	}
	for i := range report.Results {
		r := &report.Results[i]
		if r.Err != nil || r.Verdict() != verify.OK || r.Snapshot.Kind == labels.KindState {
			continue
		}
		p.Status("drill", "restoring "+r.Snapshot.Title()+" as a copy that does not stay")
		if r.Findings, err = e.rehearse(ctx, r.Snapshot, o.Waiting, p); ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		if err != nil {
			r.Findings = append(r.Findings, verify.Finding{Where: "restore", Text: err.Error()})
		}
	}
	return report, nil
}

// rehearse restores a snapshot for a drill. It returns in what its volumes differ from those that were
// captured; an error says why it cannot be restored, or did not come up.
func (e *Engine) rehearse(ctx context.Context, s catalog.Snapshot, w runconfig.Waiting, p plan.Progress) ([]verify.Finding, error) {
	var found differences
	check := func(ctx context.Context, container string) error {
		captured := capturedVolumes(s)
		if len(captured) == 0 {
			return nil
		}
		o := diff.Options{Old: s.Ref(), New: container, Volumes: captured, Afresh: true}
		if err := e.diff.Diff(ctx, o, p, found.add); err != nil {
			return fmt.Errorf("compare the copy with what was captured: %w", err)
		}
		return nil
	}
	err := e.copies.Drill(ctx, copies.DrillOptions{Snapshot: s.Ref(), Waiting: w, Check: check}, p)
	return found.findings(), err
}

// capturedVolumes are the destinations of the volumes whose content is in a snapshot.
func capturedVolumes(s catalog.Snapshot) (all []string) {
	for _, m := range s.Mounts {
		if m.Archive != nil {
			all = append(all, m.Destination)
		}
	}
	return all
}

// maxDifferences is how many files of a copy are listed that are not as they were captured.
const maxDifferences = 20

// differences collects what is not in a copy as it was captured.
type differences struct {
	listed []verify.Finding
	more   int
}

func (d *differences) add(c diff.Change) {
	if len(d.listed) >= maxDifferences {
		d.more++
		return
	}
	d.listed = append(d.listed, verify.Finding{Where: labels.DescribeKey(c.Volume), Text: fmt.Sprintf("%q in the copy is not as it was captured: %s", string(c.Path), c.Type)})
}

func (d *differences) findings() []verify.Finding {
	if d.more > 0 {
		return append(d.listed, verify.Finding{Where: "volumes", Text: fmt.Sprintf("%d more files are not as they were captured", d.more)})
	}
	return d.listed
}
