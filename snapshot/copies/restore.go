package copies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/go-connections/nat"
	"golang.org/x/sync/errgroup"

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
	all, err := cp.restoreAll(ctx, ForkOptions{RestoreOptions: o}, nil, p)
	if len(all) == 0 {
		return build.Restored{}, err
	}
	return all[0], err
}

// restoreAll makes one copy or, for a fork, several. Nothing of a rehearsal stays.
func (cp *Copier) restoreAll(ctx context.Context, o ForkOptions, rehearsal *DrillOptions, p plan.Progress) ([]build.Restored, error) {
	watch := plan.StartWatch(cp.now)
	s, err := cp.find(ctx, o.RestoreOptions, p)
	if err != nil {
		return nil, err
	}
	volumes, err := cp.archives.At(ctx, s)
	if err != nil {
		return nil, err
	}
	cp = cp.inStore(volumes)
	p.Status("check", "checking what "+s.Title()+" needs")
	all, err := cp.planRestore(ctx, s, o, p)
	if err != nil {
		return nil, err
	}
	files, err := cp.archives.AttachmentsTo(s, o.Attachments)
	if err != nil {
		return nil, err
	}
	watch.Lap("check")
	all[0].noteBinds(p)
	results := make([]build.Restored, len(all))
	for i, r := range all {
		results[i] = build.Restored{Name: r.name, Snapshot: s, Plan: r.plan, Started: r.start}
		all[i].files = files
		all[i].rehearse(rehearsal)
	}
	if o.DryRun {
		err := cp.checkContent(ctx, all[0], p)
		setTimings(results, watch.Done())
		return results, err
	}
	for _, step := range all[0].plan.Notes() {
		p.Warn("check", step.String())
	}
	defer files.Discard()
	if err := files.Fetch(ctx, p); err != nil {
		return nil, err
	}
	if err := cp.applyRestore(ctx, all, results, p); err != nil {
		return nil, err
	}
	watch.Lap("create")
	if all[0].gone {
		p.Send(plan.Event{
			Level: plan.LevelNote, Phase: "restore", Text: fmt.Sprintf("container %s is gone", s.Container.Name), Topic: plan.TopicOriginalGone,
		})
	}
	setTimings(results, watch.Done())
	return results, nil
}

// find finds the snapshot that is restored. One that has lost its image comes back on that which its container ran from.
func (cp *Copier) find(ctx context.Context, o runconfig.RestoreOptions, p plan.Progress) (catalog.Snapshot, error) {
	resolve := cp.catalog.Resolve
	if o.Lost {
		resolve = func(ctx context.Context, word string) (catalog.Snapshot, error) {
			return cp.archives.FindLost(ctx, word, p)
		}
	}
	s, err := resolve(ctx, o.Snapshot)
	if err == nil {
		err = s.CheckContainer()
	}
	if err != nil || !o.Lost {
		return s, err
	}
	return cp.archives.OnBase(ctx, s, p)
}

// setTimings notes how long it took, which is known of all copies together.
func setTimings(results []build.Restored, timings plan.Timings) {
	for i := range results {
		results[i].Timings = timings
	}
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
	waiting   runconfig.Waiting
	health    labels.Health // when it was captured
	foreign   bool          // the snapshot was made on another engine
	gone      bool          // the original is of this engine, but does not exist any more, and nothing else has its name
	plan      plan.Plan
	files     *archives.Files // the attachments; nil: nobody asked for them
	together  bool            // it is one of several that a fork makes: all or none; or nothing of it stays
	rehearsal *DrillOptions

	notes       plan.Plan // what is different in a copy
	volumeSteps plan.Plan
	bindNotes   []plan.Event // worth knowing about bind mounts
}

// mark adds to what the restore is going to make the labels that name the operation and its time.
func (r restore) mark(now time.Time) {
	at := labels.FormatTime(now)
	for i := range r.volumes {
		r.volumes[i].Create.Labels[labels.KeyOperation] = r.operation
		r.volumes[i].Create.Labels[labels.KeyRestoredAt] = at
	}
	r.spec.Config.Labels[labels.KeyRestoredAt] = at
	switch {
	case r.start:
		r.spec.Config.Labels[labels.KeyOperation] = r.operation
	case r.firstName() != r.name:
		r.spec.Config.Labels[labels.KeyFilledBy] = r.operation
	}
}

// steps returns what applying the plan does, without the steps that make volumes.
func (r restore) steps(s catalog.Snapshot, allEndpoints bool) plan.Plan {
	steps := plan.Plan{{Op: plan.OpCreateContainer, Target: r.name, Reason: "from " + s.Source()}}
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
		if r.foreign {
			note.Text += runconfig.NoteElsewhere
		}
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
	if !labels.IsContainerName(asked) || len(asked) < 2 { //nolint:mnd // as an engine wants it
		return "", fmt.Errorf("invalid container name %q: use two or more letters, digits, '_', '.' and '-'", asked)
	}
	return asked, nil
}

// applyRestore makes the copies, and starts them if that is planned: all, or none. If a start fails
// because a program that is not a container holds a port, it tries again with another port and new
// containers: a container whose start has failed must not be started twice, or it would have no
// network (moby#51758).
func (cp *Copier) applyRestore(ctx context.Context, all []restore, results []build.Restored, p plan.Progress) (err error) {
	rollback := dockerop.Rollback{Progress: p}
	defer func() { rollback.Unless(ctx, &err) }()
	cp.ClearCopies(ctx, p)
	volumes, err := cp.makeVolumes(ctx, all, &rollback, p)
	defer func() { volumes.End(p) }()
	if err != nil {
		return err
	}
	replaced := make([]plan.Plan, len(all))
	for i, r := range all {
		replaced[i] = r.plan.Only(plan.OpReplacePort)
	}
	for {
		made, err := cp.makeCopies(ctx, all, volumes, p)
		if err == nil {
			made.volumes.End(p)
			for i := range all {
				results[i].ContainerID = made.ids[i]
				results[i].Incomplete = volumes.IsIncomplete() || made.volumes.IsIncomplete()
				results[i].Ports = cp.build.ReportPorts(ctx, made.ids[i], replaced[i], p)
			}
			return nil
		}
		isFreed := false
		for i, r := range all {
			freed := r.spec.FreeFailedPort(err, r.publish)
			replaced[i] = append(replaced[i], freed...)
			isFreed = isFreed || len(freed) > 0
		}
		if !isFreed {
			return err
		}
	}
}

// madeCopies are containers that a restore has made.
type madeCopies struct {
	ids     []string
	volumes *build.RestoredVolumes // their anonymous volumes, if something was restored into them
}

// makeCopies creates the containers, fills their anonymous volumes, and starts them if that is
// planned. To roll that back the worker ends first, because the engine keeps volumes that a worker
// mounts. named are the volumes that were made before.
func (cp *Copier) makeCopies(ctx context.Context, all []restore, named *build.RestoredVolumes, p plan.Progress) (made madeCopies, err error) {
	rollback := dockerop.Rollback{Progress: p}
	defer func() { rollback.Unless(ctx, &err) }()
	made.ids = make([]string, len(all))
	journal := pending.HalfMade{Operation: all[0].operation}
	rollback.Add(func(ctx context.Context) error { return cp.docker.RemoveVolumes(ctx, journal.Anonymous) })
	for i := range made.ids {
		rollback.Add(func(ctx context.Context) error { return cp.docker.Discard(ctx, made.ids[i]) })
	}
	rollback.Add(func(context.Context) error { return made.volumes.Close() })
	err = eachCopy(ctx, all, func(ctx context.Context, i int, r restore) (err error) {
		made.ids[i], err = cp.build.Make(ctx, build.Container{Spec: r.spec, Name: r.firstName(), Foreign: r.foreign}, p)
		return err
	})
	if err != nil {
		return made, err
	}
	if made.volumes, err = cp.fillAnonymous(ctx, all, made.ids, &journal, p); err != nil {
		return made, err
	}
	if err = all[0].rehearsal.checkFilled(ctx, made.ids[0]); err != nil {
		return made, err
	}
	err = eachCopy(ctx, all, func(ctx context.Context, i int, r restore) error { return cp.finish(ctx, made.ids[i], r, p) })
	if err == nil && all[0].rehearsal != nil {
		return made, errRehearsed
	}
	if err == nil {
		err = all[0].files.Place()
	}
	if err == nil {
		rollback.Add(func(context.Context) error { return all[0].files.Remove() })
		err = settle(ctx, made.volumes, named)
	}
	return made, err
}

// settle makes a restore count as over. Until then, whoever finds one of its workers dead removes what it has made, so this is the
// last thing that may fail. Of a fork only the worker of the named volumes has the journal of all copies. That of the anonymous
// volumes is gone by then: a settled one would keep the engine from removing them together with their containers.
func settle(ctx context.Context, anonymous, named *build.RestoredVolumes) error {
	if err := anonymous.Settle(ctx); err != nil {
		return err
	}
	if err := anonymous.Close(); err != nil {
		return err
	}
	return named.Settle(ctx)
}

// eachCopy does something for several copies at once.
func eachCopy(ctx context.Context, all []restore, do func(ctx context.Context, i int, r restore) error) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(dockerop.MaxConcurrentCalls)
	for i, r := range all {
		calls.Go(func() error { return do(ctx, i, r) })
	}
	return calls.Wait()
}

// fillAnonymous restores the anonymous volumes of all copies. It notes them in the journal.
func (cp *Copier) fillAnonymous(ctx context.Context, all []restore, ids []string, journal *pending.HalfMade, p plan.Progress) (*build.RestoredVolumes, error) {
	var volumes []runconfig.NewVolume
	for i, r := range all {
		anonymous := r.anonymous()
		if len(anonymous) == 0 {
			return nil, nil // and so has none of the others
		}
		names, err := cp.build.AnonymousNames(ctx, ids[i], anonymous)
		if err != nil {
			return nil, err
		}
		volumes, journal.Anonymous = append(volumes, anonymous...), append(journal.Anonymous, names...)
	}
	o := volumebackup.WorkerOptions{}
	var err error
	if o.Journal, err = journal.Labels(); err != nil {
		return nil, err
	}
	return cp.build.FillAnonymous(ctx, all[0].id, volumes, journal.Anonymous, o, p)
}

// firstName is the name that the container is made with.
func (r restore) firstName() string {
	if !r.start && (r.together || len(r.anonymous()) > 0) {
		return unfinishedName(r.name, r.operation)
	}
	return r.name
}

// finish starts the copy or, if it is not to be started, gives it its name.
func (cp *Copier) finish(ctx context.Context, id string, r restore, p plan.Progress) error {
	switch first := r.firstName(); {
	case r.start:
		return cp.start(ctx, id, r, p)
	case first != r.name:
		return dockerop.Describe(cp.docker.ContainerRename(ctx, id, r.name), fmt.Sprintf("rename container %s to %s", first, r.name))
	}
	return nil
}

// start starts the copy and, if that is asked for, waits until it is up.
func (cp *Copier) start(ctx context.Context, id string, r restore, p plan.Progress) error {
	p.Status("start", "starting container "+r.name)
	if err := cp.docker.Start(ctx, id); err != nil {
		return fmt.Errorf("start container %s: %w", r.name, err)
	}
	err := cp.build.WaitReady(ctx, build.Awaited{ID: id, Name: r.name, Began: cp.now(), Health: r.health}, r.waiting, p)
	if down, ok := errors.AsType[*build.NotReadyError](err); ok {
		down.Copy = true
	}
	return err
}
