package replace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// member is one of the containers that are restored in place together: what was observed and planned
// for it, and what became of it.
type member struct {
	options   Options
	Snapshot  catalog.Snapshot
	Name      string                     // of the container, before and after
	Old       *container.InspectResponse // nil: it is gone
	Spec      *runconfig.Spec
	around    runconfig.Surroundings
	foreign   bool
	mounts    []runconfig.PlacedVolume // the captured volumes
	chosen    []string                 // the names of those that only are to go back; nil: all
	Volumes   []runconfig.PlacedVolume // those of them that are not left to another member
	Start     bool
	Pause     bool            // it was paused
	notes     plan.Plan       // what differs from the snapshot
	problems  []plan.Problem  // why it cannot be done
	whiteouts []string        // paths of the old container that its safety snapshot would lose
	files     *archives.Files // the attachments; nil: nobody asked for them
	promoted  *promotion      // the copy of which Snapshot is taken; nil: it is there

	safety  *catalog.Snapshot // once it is taken
	newID   string
	changes []VolumeChange
}

// find resolves a snapshot, and finds the container that it is restored to.
func (rp *Replacer) find(ctx context.Context, o Options, p plan.Progress) (*member, error) {
	if o.Copy != "" {
		return rp.findPromoted(ctx, o)
	}
	resolve := rp.catalog.Resolve
	if o.Lost {
		resolve = func(ctx context.Context, word string) (catalog.Snapshot, error) {
			return rp.archives.FindLost(ctx, word, p)
		}
	}
	s, err := resolve(ctx, o.Snapshot)
	if err != nil {
		return nil, err
	}
	if err := s.CheckContainer(); err != nil {
		return nil, err
	}
	m := &member{options: o, Snapshot: s, Name: o.Name}
	if m.Old, err = rp.findReplaced(ctx, s, o.Name); err != nil {
		return nil, err
	}
	switch {
	case m.Name == "":
		m.Name = s.Container.Name
	case m.Old != nil && m.Name == m.Old.ID: // the user named it by its ID: it keeps its real name
		m.Name = dockerop.ContainerName(*m.Old)
	}
	return m, nil
}

// findReplaced finds the container that will be replaced: the one of the name
// that was asked for; else the one of the captured name, or the captured one
// under whatever name it has now.
func (rp *Replacer) findReplaced(ctx context.Context, s catalog.Snapshot, asked string) (*container.InspectResponse, error) {
	words := []string{s.Container.Name, s.Container.ID}
	if asked != "" {
		words = []string{asked}
	}
	for _, word := range words {
		found, err := rp.docker.InspectIfThere(ctx, word)
		if err != nil || found != nil {
			return found, err
		}
	}
	if asked != "" && asked != s.Container.Name {
		return nil, fmt.Errorf("no container %s to replace: %w", asked, cerrdefs.ErrNotFound)
	}
	return nil, nil
}

// observe decides what the container becomes, and looks for everything that this depends on.
func (rp *Replacer) observe(ctx context.Context, m *member, p plan.Progress) error {
	s, o := m.Snapshot, m.options
	sp, lost, err := runconfig.Decode(s.Config)
	if err != nil {
		return fmt.Errorf("snapshot %s: %w", s.Title(), err)
	}
	for _, field := range lost {
		p.Warn("check", "this version does not know "+field+" and leaves it out")
	}
	m.Spec, m.Start = &sp, runconfig.StartAfterRestore(s, o.Start)
	m.Pause = o.Start == runconfig.StartAsCaptured && s.Container.State == labels.StatePaused
	notes := sp.InPlace(s, m.Old)
	m.mounts = sp.PlaceVolumes(s, m.Old)
	if o.keeps() {
		return rp.observeKept(ctx, m, p)
	}
	s.WarnWhiteouts(p)
	m.notes = sp.Override(o.RestoreOptions, notes)
	for _, field := range sp.FitAPI(rp.docker.ClientVersion()) {
		p.Warn("check", "the engine's API does not know "+field+", it is left out")
	}
	calls, callsCtx := errgroup.WithContext(ctx)
	if m.Old != nil && !m.Old.State.Dead && m.promoted == nil && !o.NoSafety {
		calls.Go(func() (err error) {
			m.whiteouts, err = rp.docker.Whiteouts(callsCtx, m.Old.ID)
			return err
		})
	}
	calls.Go(func() (err error) {
		m.around, err = rp.build.Observe(callsCtx, s, &sp, dockerop.Distinct(sp.NamedVolumes(nil), m.places()), p)
		return err
	})
	if err := calls.Wait(); err != nil {
		return err
	}
	if m.foreign = m.promoted == nil && s.IsForeign(m.around.Info.ID, m.around.Key); m.foreign {
		sp.ForgetForeign(o.Labels)
	}
	sp.BlankInherited(m.around.Inherited)
	return nil
}

// observeKept does the same if only volumes go back: the container stays, with the configuration that it has.
func (rp *Replacer) observeKept(ctx context.Context, m *member, p plan.Progress) (err error) {
	m.Start, m.Pause = false, false
	if m.Old != nil {
		m.Spec, m.Name = runconfig.SpecOf(*m.Old), dockerop.ContainerName(*m.Old)
		if !m.options.Live {
			m.Start, m.Pause = m.Old.State.Running || m.Old.State.Restarting, m.Old.State.Paused
		}
	}
	m.around, err = rp.build.Observe(ctx, m.Snapshot, m.Spec, m.places(), p)
	m.foreign = err == nil && m.Snapshot.IsForeign(m.around.Info.ID, m.around.Key)
	return err
}

// renamed finds out whether the captured container was renamed and another one has its name
// now. Then the user has to say which of the two is meant.
func (rp *Replacer) renamed(ctx context.Context, m *member) error {
	id := m.Snapshot.Container.ID
	if m.promoted != nil {
		id = m.promoted.of.ID
	}
	if m.options.Name != "" || m.Old == nil || m.Old.ID == id {
		return nil
	}
	captured, err := rp.docker.InspectIfThere(ctx, id)
	if err != nil || captured == nil {
		return err
	}
	m.problem(plan.ProblemRenamed, dockerop.ContainerName(*captured),
		fmt.Sprintf("container %s is not the one that was captured, which is named %s now", dockerop.ContainerName(*m.Old), dockerop.ContainerName(*captured)))
	return nil
}

// problem adds a problem.
func (m *member) problem(kind plan.ProblemKind, subject, text string) {
	m.problems = append(m.problems, plan.Problem{Kind: kind, Subject: subject, Text: text})
}

// hasName tells whether a container was, is, or will be the member.
func (m *member) hasName(word string) bool {
	return word == m.Name || word == m.Snapshot.Container.ID || m.isOld(word)
}

// isOld tells whether word is the name or the ID of the old container.
func (m *member) isOld(word string) bool {
	return m.Old != nil && (word == m.Old.ID || word == dockerop.ContainerName(*m.Old))
}

// placeVolumes finds out which volumes are there, and which of them stay as they are.
func (m *member) placeVolumes() {
	if old := m.Old; old != nil && dockerop.ContainerName(*old) != m.Name {
		m.notes = append(m.notes, plan.Step{Op: plan.OpRenameContainer, Target: dockerop.ContainerName(*old), Reason: "it becomes " + m.Name + ", as it was captured"})
	}
	for i := range m.mounts {
		v := &m.mounts[i]
		v.Exists = !m.around.NoVolume[v.Create.Name] && !m.around.NoPath[v.Create.Name]
		delete(m.around.NoVolume, v.Create.Name) // it will be made
	}
	if !m.options.keeps() {
		m.mountAnonymous()
	}
	m.dead()
	named := append(slices.Clone(m.options.ReadOnly), m.chosen...)
	m.unknownVolumes(named)
	m.missingBinds()
	for i := range m.mounts {
		m.mounts[i].Keep(named)
	}
	m.leaveUnchosen()
	m.Volumes = m.mounts
}

// findProblems collects every problem and every note. Those that are known already are the first.
func (m *member) findProblems(g *group, reserved []string) {
	o := m.options
	around := m.around
	around.Containers = g.without(around.Containers)
	around.Together = g.namesBeside(m)
	if g.keeps {
		m.findKeptProblems(g, around, reserved)
		return
	}
	if !m.foreign {
		m.Spec.FollowNames(around.Find)
	}
	m.problems = append(m.problems, around.Problems(m.Spec, m.Name)...)
	if m.Start {
		others := around
		others.Containers = slices.DeleteFunc(slices.Clone(around.Containers), func(c container.Summary) bool { return g.isCopy(c.ID) })
		m.problems = append(m.problems, m.Spec.PortProblems(others)...)
		m.problems = append(m.problems, m.Spec.AddressProblems(around)...)
	}
	g.findHolders(m, around.Containers)
	m.copyConflicts(g, around)
	m.peerProblems(g, around)
	m.relativeMounts()
	m.swarmTask()
	m.unsaved(g)
	if o.SkipMissing {
		var left plan.Plan
		left, m.problems = m.Spec.LeaveOut(m.problems)
		m.notes = append(m.notes, left...)
	}
	m.nameProject()
	m.notes = append(m.notes, m.kept()...)
	if m.foreign {
		m.problems = append(m.problems, around.ForeignProblemsInPlace(m.Spec, m.mounts, m.Old, o.RestoreOptions, reserved...)...)
	}
}

// nameProject names the Compose project of networks that are gone with it: Compose makes them again, with its labels.
func (m *member) nameProject() {
	project := m.Snapshot.Project()
	for i, p := range m.problems {
		if p.Kind == plan.ProblemNoNetwork && project != "" && strings.HasPrefix(p.Subject, project+"_") {
			m.problems[i] = plan.Problem{
				Kind: plan.ProblemNoProject, Subject: p.Subject, Text: fmt.Sprintf("network %s of Compose project %s does not exist", p.Subject, project),
			}
		}
	}
}

// dead finds out whether the engine failed to remove the old container. Such a container can
// only be removed, so there would be nothing to roll back to.
func (m *member) dead() {
	if m.Old != nil && m.Old.State.Dead {
		name := dockerop.ContainerName(*m.Old)
		m.problem(plan.ProblemDead, name, fmt.Sprintf("container %s is dead: the engine could not remove it to the end", name))
	}
}

// swarmTask finds out whether Swarm runs the container: it would start another one as soon as this one stops, and remove this one.
func (m *member) swarmTask() {
	all := m.Snapshot.ContainerLabels()
	if m.Old != nil {
		all = m.Old.Config.Labels
	}
	if service, isTask := catalog.SwarmService(all); isTask {
		m.problem(plan.ProblemSwarmTask, m.Name, fmt.Sprintf("container %s is a task of Swarm service %s: Swarm starts another one as soon as it stops", m.Name, service))
	}
}

// peerProblems finds containers that the new one needs in order to start, and that do not run.
func (m *member) peerProblems(g *group, around runconfig.Surroundings) {
	for _, peer := range m.Spec.Peers() {
		if m.Start && !g.willRun(peer, around) {
			m.problem(plan.ProblemNoContainer, peer, m.Spec.Needs(peer)+", which does not run")
		}
	}
}

// unsaved finds what the safety snapshots would not hold and, without one, what could not be
// rolled back.
func (m *member) unsaved(g *group) {
	if m.Old == nil {
		return
	}
	name := dockerop.ContainerName(*m.Old)
	if g.noSafety {
		if runconfig.IsOneShot(*m.Old) {
			m.problem(plan.ProblemOneShot, name, fmt.Sprintf("container %s is removed when it stops (--rm), and without a safety snapshot it could not be made again", name))
		}
		return
	}
	for _, path := range m.whiteouts {
		m.problem(plan.ProblemWhiteout, path, fmt.Sprintf("the safety snapshot of container %s would not hold %s: %s", name, path, dockerop.DescribeWhiteout(path)))
	}
	for _, volume := range m.notMounted(g) {
		m.problem(plan.ProblemUnsaved, volume, fmt.Sprintf("%s is not mounted by container %s now, so the safety snapshot would not hold what is in it", labels.DescribeKey(volume), name))
	}
}

// notMounted are the keys of volumes and bind mounts that have content to lose, and that no old container mounts.
func (m *member) notMounted(g *group) []string {
	mounted := g.mountedKeys()
	var names []string
	for _, v := range m.Volumes {
		if (v.Exists || v.Elsewhere) && v.Archive != nil && !slices.Contains(mounted, v.Create.Name) {
			names = append(names, v.Create.Name)
		}
	}
	return names
}

// kept are the volumes that are left as they are.
func (m *member) kept() plan.Plan {
	var steps plan.Plan
	for _, v := range m.Volumes {
		if v.Kept != "" && v.Kept != notChosen {
			kept := "; the volume is kept as it is"
			if labels.IsPathKey(v.Create.Name) {
				kept = "; the directory is kept as it is"
			}
			steps = append(steps, plan.Step{Op: plan.OpLeaveOut, Target: v.Create.Name, Reason: v.Kept + kept})
		}
	}
	return steps
}

// saves tells whether a safety snapshot will be taken. If the container is gone, that depends on
// whether it left volumes.
func (m *member) saves(g *group) bool {
	return !g.noSafety && (m.Old != nil || len(m.notMounted(g)) > 0)
}
