package copies

import (
	"context"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Restore restores a snapshot as a new container. It checks everything before it makes anything; a
// [plan.ProblemsError] says what stands against it. If making something fails, it removes what it
// has made.
func (cp *Copier) Restore(ctx context.Context, o runconfig.RestoreOptions, p plan.Progress) (build.Restored, error) {
	watch := plan.StartWatch(cp.now)
	s, err := cp.catalog.Resolve(ctx, o.Snapshot)
	if err != nil {
		return build.Restored{}, err
	}
	volumes, err := cp.archives.At(ctx, s)
	if err != nil {
		return build.Restored{}, err
	}
	cp = cp.inStore(volumes)
	p.Status("check", "checking what "+string(s.ID)+" needs")
	r, err := cp.planRestore(ctx, s, o, p)
	if err != nil {
		return build.Restored{}, err
	}
	watch.Lap("check")
	r.noteBinds(p)
	result := build.Restored{Name: r.name, Snapshot: s, Plan: r.plan, Started: r.start}
	if o.DryRun {
		err := cp.checkContent(ctx, r, p)
		result.Timings = watch.Done()
		return result, err
	}
	for _, step := range r.plan.Notes() {
		p.Warn("check", step.String())
	}
	if err := cp.applyRestore(ctx, r, &result, p); err != nil {
		return build.Restored{}, err
	}
	watch.Lap("create")
	if r.gone {
		p.Send(plan.Event{
			Level: plan.LevelNote, Phase: "restore", Text: fmt.Sprintf("container %s is gone", s.Container.Name), Topic: plan.TopicOriginalGone,
		})
	}
	result.Timings = watch.Done()
	return result, nil
}

// inStore returns a copier that restores from another store.
func (cp *Copier) inStore(volumes archives.Service) *Copier {
	other := *cp
	other.volumes = volumes
	other.build = cp.build.InStore(volumes)
	return &other
}

// restore is a restore that was found possible.
type restore struct {
	id        labels.ID
	operation string // names this restore, in labels on what it makes
	spec      *runconfig.Spec
	volumes   []runconfig.NewVolume
	name      string
	publish   nat.PortMap // ports that the user named, which must not be replaced
	start     bool
	foreign   bool // the snapshot was made on another engine
	gone      bool // the original is of this engine, but does not exist any more, and nothing else has its name
	plan      plan.Plan

	bindNotes []plan.Event // worth knowing about bind mounts
}

// planRestore decides everything, and makes nothing.
func (cp *Copier) planRestore(ctx context.Context, s catalog.Snapshot, o runconfig.RestoreOptions, p plan.Progress) (restore, error) {
	sp, lost, err := runconfig.Decode(s.Config)
	if err != nil {
		return restore{}, fmt.Errorf("snapshot %s: %w", s.ID, err)
	}
	for _, field := range lost {
		p.Warn("check", "this version does not know "+field+" and leaves it out")
	}
	operation, err := cp.newOperation()
	if err != nil {
		return restore{}, err
	}
	suffix := copySuffix(operation)
	name, err := copyName(s, o.Name, suffix)
	if err != nil {
		return restore{}, err
	}
	notes := sp.ForCopy(s)
	volumes, volumeSteps, bindNotes := sp.PlanMounts(s, o, suffix)
	notes = sp.Override(o, notes)
	for _, field := range sp.FitAPI(cp.docker.ClientVersion()) {
		p.Warn("check", "the engine's API does not know "+field+", it is left out")
	}
	around, err := cp.build.Observe(ctx, s, &sp, sp.NamedVolumes(volumes))
	if err != nil {
		return restore{}, err
	}
	foreign := s.IsForeign(around.Info.ID, around.Key)
	if foreign {
		sp.ForgetForeign(o.Labels)
	}
	sp.BlankInherited(around.Inherited)
	r := restore{
		id: s.ID, operation: operation, spec: &sp, volumes: volumes, name: name, publish: o.Publish,
		start: runconfig.StartAfterRestore(s, o.Start), foreign: foreign, bindNotes: bindNotes,
		gone: !foreign && !around.Has(s.Container),
	}
	r.mark()
	problems := around.Problems(&sp, name)
	replaced := sp.FreeTakenPorts(runconfig.HeldPorts(around.Containers), o.Publish)
	if r.start { // a port may be free by the time that somebody starts the copy
		problems = append(problems, sp.PortProblems(around)...)
	}
	if o.SkipMissing {
		r.plan, problems = sp.LeaveOut(problems)
	}
	if r.foreign {
		problems = append(problems, around.ForeignProblems(&sp, volumes, o, cp.build.ReservedVolumes()...)...)
	}
	if len(problems) > 0 {
		return restore{}, &plan.ProblemsError{Problems: problems}
	}
	if o.Volumes != runconfig.VolumesNone {
		r.plan = append(r.plan, runconfig.MissingArchives(volumes)...)
	}
	r.plan = slices.Concat(r.plan, notes, sp.YieldHostname(s.Container, around), replaced, volumeSteps, r.steps(s, runconfig.CreatesAllEndpoints(cp.docker.ClientVersion())))
	return r, nil
}

// mark adds the labels that name the operation to what the restore is going to make.
func (r restore) mark() {
	for i := range r.volumes {
		r.volumes[i].Create.Labels[labels.KeyOperation] = r.operation
	}
	switch {
	case r.start:
		r.spec.Config.Labels[labels.KeyOperation] = r.operation
	case len(r.anonymous()) > 0:
		r.spec.Config.Labels[labels.KeyFilledBy] = r.operation
	}
}

// steps returns what applying the plan does, without the steps that make volumes.
func (r restore) steps(s catalog.Snapshot, allEndpoints bool) plan.Plan {
	steps := plan.Plan{{Op: plan.OpCreateContainer, Target: r.name, Reason: "from " + s.Ref()}}
	for i, name := range r.spec.NetworkNames() {
		if i > 0 && !allEndpoints {
			steps = append(steps, plan.Step{Op: plan.OpConnectNetwork, Target: name})
		}
	}
	if r.start {
		steps = append(steps, plan.Step{Op: plan.OpStartContainer, Target: r.name})
	}
	return steps
}

// noteBinds reports what became of the bind mounts, unless the owner of the container knows.
func (r restore) noteBinds(p plan.Progress) {
	if !r.foreign && runconfig.KnowsBinds(r.spec.Config.Labels) {
		return
	}
	for _, note := range r.bindNotes {
		p.Send(note)
	}
}

// suffixDigits is how many digits of an operation [copySuffix] returns.
const suffixDigits = 6

// copySuffix returns what the names of a copy and its volumes have after the original's.
func copySuffix(operation string) string { return operation[len(operation)-suffixDigits:] }

// copyName returns the new container's name: the user's, or one that is surely free.
func copyName(s catalog.Snapshot, asked, suffix string) (string, error) {
	if asked == "" {
		return s.Container.Name + "-" + suffix, nil
	}
	if !labels.IsContainerName(asked) {
		return "", fmt.Errorf("invalid container name %q: use letters, digits, '_', '.' and '-'", asked)
	}
	return asked, nil
}

// applyRestore makes the copy, and starts it if that is planned. If the start fails because a
// program that is not a container holds a port, it tries again with another port and a new
// container: a container whose start has failed must not be started twice, or it would have no
// network (moby#51758).
func (cp *Copier) applyRestore(ctx context.Context, r restore, result *build.Restored, p plan.Progress) (err error) {
	rollback := dockerop.Rollback{Progress: p}
	defer func() { rollback.Unless(ctx, &err) }()
	cp.ClearCopies(ctx, p)
	volumes, err := cp.makeVolumes(ctx, r, &rollback, p)
	defer func() { volumes.Finish(ctx, err == nil, p) }()
	if err != nil {
		return err
	}
	replaced := r.plan.Only(plan.OpReplacePort)
	for {
		made, err := cp.makeCopy(ctx, r, p)
		if err == nil {
			result.ContainerID = made.id
			result.Incomplete = volumes.IsIncomplete() || made.volumes.IsIncomplete()
			made.volumes.Finish(ctx, true, p)
			cp.build.ReportPorts(ctx, made.id, replaced, p)
			return nil
		}
		freed := r.spec.FreeFailedPort(err, r.publish)
		if len(freed) == 0 {
			return err
		}
		replaced = append(replaced, freed...)
	}
}

// madeCopy is a container that a restore has made.
type madeCopy struct {
	id      string
	volumes *build.RestoredVolumes // its anonymous volumes, if something was restored into them
}

// makeCopy creates the container, fills its anonymous volumes, and starts it if that is planned. To
// roll that back the worker ends first, because the engine keeps volumes that a worker mounts.
func (cp *Copier) makeCopy(ctx context.Context, r restore, p plan.Progress) (made madeCopy, err error) {
	rollback := dockerop.Rollback{Progress: p}
	defer func() { rollback.Unless(ctx, &err) }()
	anonymous, name := r.anonymous(), r.name
	if len(anonymous) > 0 && !r.start {
		r.name = unfinishedName(name, r.operation)
	}
	if made.id, err = cp.build.Make(ctx, build.Container{Spec: r.spec, Name: r.name, Foreign: r.foreign}, p); err != nil {
		return made, err
	}
	journal := pending.HalfMade{Operation: r.operation}
	rollback.Add(func(ctx context.Context) error { return cp.docker.RemoveVolumes(ctx, journal.Anonymous) })
	rollback.Add(func(ctx context.Context) error { return cp.docker.RemoveContainer(ctx, made.id) })
	rollback.Add(func(context.Context) error { return made.volumes.Close() })
	if len(anonymous) > 0 {
		if journal.Anonymous, err = cp.build.AnonymousNames(ctx, made.id, anonymous); err != nil {
			return made, err
		}
		o := volumebackup.WorkerOptions{}
		if o.Journal, err = journal.Labels(); err != nil {
			return made, err
		}
		if made.volumes, err = cp.build.FillAnonymous(ctx, r.id, anonymous, journal.Anonymous, o, p); err != nil {
			return made, err
		}
	}
	switch {
	case r.start:
		p.Status("start", "starting container "+name)
		err = dockerop.Describe(cp.docker.ContainerStart(ctx, made.id, container.StartOptions{}), "start container "+name)
	case r.name != name:
		err = dockerop.Describe(cp.docker.ContainerRename(ctx, made.id, name), fmt.Sprintf("rename container %s to %s", r.name, name))
	}
	return made, err
}
