package copies

import (
	"context"
	"fmt"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// planRestore decides everything about one copy or, for a fork, several, and makes nothing.
func (cp *Copier) planRestore(ctx context.Context, s catalog.Snapshot, o ForkOptions, p plan.Progress) ([]restore, error) {
	operation, err := cp.newOperation()
	if err != nil {
		return nil, err
	}
	all := make([]restore, max(1, o.Count))
	for i := range all {
		tell := p
		if i > 0 {
			tell = nil // it would be the same
		}
		if all[i], err = cp.draft(s, o, operation, i, tell); err != nil {
			return nil, err
		}
	}
	around, err := cp.build.Observe(ctx, s, all[0].spec, all[0].spec.NamedVolumes(all[0].volumes), p)
	if err != nil {
		return nil, err
	}
	var problems []plan.Problem
	for i := range all {
		for _, found := range cp.fit(&all[i], s, o.RestoreOptions, around) {
			if !slices.Contains(problems, found) { // most are the same for every copy
				problems = append(problems, found)
			}
		}
	}
	if len(problems) > 0 {
		return nil, &plan.ProblemsError{Problems: problems}
	}
	return all, nil
}

// draft decides what does not depend on the engine.
func (cp *Copier) draft(s catalog.Snapshot, o ForkOptions, operation string, i int, p plan.Progress) (restore, error) {
	sp, lost, err := runconfig.Decode(s.Config)
	if err != nil {
		return restore{}, fmt.Errorf("snapshot %s: %w", s.Title(), err)
	}
	for _, field := range lost {
		p.Warn("check", "this version does not know "+field+" and leaves it out")
	}
	s.WarnWhiteouts(p)
	name, suffix, err := o.nameOf(s, operation, i)
	if err != nil {
		return restore{}, err
	}
	r := restore{
		id: s.ID, operation: operation, spec: &sp, name: name, publish: o.Publish, waiting: o.Waiting, health: s.Container.Health, together: o.Count > 0,
		start: runconfig.StartAfterRestore(s, o.Start), notes: sp.ForCopy(s, o.CopyLabels),
	}
	r.volumes, r.volumeSteps, r.bindNotes = sp.PlanMounts(s, o.RestoreOptions, suffix)
	r.notes = sp.Override(o.RestoreOptions, r.notes)
	for _, field := range sp.FitAPI(cp.docker.ClientVersion()) {
		p.Warn("check", "the engine's API does not know "+field+", it is left out")
	}
	return r, nil
}

// fit completes the plan of a copy by what is there on the engine, and returns what stands against it.
func (cp *Copier) fit(r *restore, s catalog.Snapshot, o runconfig.RestoreOptions, around runconfig.Surroundings) []plan.Problem {
	sp := r.spec
	r.foreign = s.IsForeign(around.Info.ID, around.Key)
	r.gone = !r.foreign && !around.Has(s.Container)
	if r.foreign {
		sp.ForgetForeign(o.Labels)
	}
	if !r.foreign {
		sp.FollowNames(around.Find)
	}
	sp.BlankInherited(around.Inherited)
	sp.BlankActing(around.Inherited, o.CopyLabels)
	r.mark(cp.now())
	problems := around.Problems(sp, r.name)
	replaced := sp.FreeTakenPorts(runconfig.HeldPorts(around.Containers), o.Publish)
	if r.start { // a port may be free by the time that somebody starts the copy
		problems = append(problems, sp.PortProblems(around)...)
	}
	if o.SkipMissing {
		r.plan, problems = sp.LeaveOut(problems)
	}
	if r.foreign {
		problems = append(problems, around.ForeignProblems(sp, r.volumes, o, cp.build.ReservedVolumes()...)...)
	}
	if len(problems) > 0 {
		return problems
	}
	if o.Volumes != runconfig.VolumesNone {
		r.plan = append(r.plan, runconfig.MissingArchives(r.volumes)...)
	}
	r.plan = slices.Concat(r.plan, r.notes, sp.YieldHostname(s.Container, around), replaced, r.volumeSteps, r.steps(s, runconfig.CreatesAllEndpoints(cp.docker.ClientVersion())))
	return nil
}
