package replace

import (
	"context"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
)

// replacement is the plan of a restore in place, and what was observed for it.
type replacement struct {
	Snapshot catalog.Snapshot
	Name     string                     // of the container, before and after
	Old      *container.InspectResponse // nil: it is gone
	Spec     *runconfig.Spec
	foreign  bool
	Volumes  []runconfig.PlacedVolume
	Others   []pending.Other // running containers that hold the volumes, to be stopped meanwhile
	Start    bool
	Pause    bool           // it was paused
	storage  storage.Map    // of the engine's volumes, and of those that will be made
	notes    plan.Plan      // what differs from the snapshot
	problems []plan.Problem // why it cannot be done
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

// planReplace decides everything, and makes nothing.
func (rp *Replacer) planReplace(ctx context.Context, s catalog.Snapshot, old *container.InspectResponse, o Options, p plan.Progress) (replacement, error) {
	sp, lost, err := runconfig.Decode(s.Config)
	if err != nil {
		return replacement{}, fmt.Errorf("snapshot %s: %w", s.ID, err)
	}
	for _, field := range lost {
		p.Warn("check", "this version does not know "+field+" and leaves it out")
	}
	r := replacement{Snapshot: s, Name: o.Name, Old: old, Spec: &sp, Start: runconfig.StartAfterRestore(s, o.Start)}
	switch {
	case r.Name == "":
		r.Name = s.Container.Name
	case old != nil && r.Name == old.ID: // the user named it by its ID: it keeps its real name
		r.Name = dockerop.ContainerName(*old)
	}
	r.Pause = o.Start == runconfig.StartAsCaptured && s.Container.State == labels.StatePaused
	notes := sp.InPlace(s, old)
	r.Volumes = sp.PlaceVolumes(s, old)
	r.notes = sp.Override(o.RestoreOptions, notes)
	for _, field := range sp.FitAPI(rp.docker.ClientVersion()) {
		p.Warn("check", "the engine's API does not know "+field+", it is left out")
	}
	around, err := rp.build.Observe(ctx, s, &sp, dockerop.Distinct(sp.NamedVolumes(nil), r.places()))
	if err != nil {
		return replacement{}, err
	}
	if r.foreign = s.IsForeign(around.Info.ID, around.Key); r.foreign {
		sp.ForgetForeign(o.Labels)
	}
	sp.BlankInherited(around.Inherited)
	dependents, err := rp.dependents(ctx, old, around)
	if err != nil {
		return replacement{}, err
	}
	renamed, err := rp.renamed(ctx, s, old, o.Name)
	if err != nil {
		return replacement{}, err
	}
	r.findProblems(around, append(dependents, renamed...), o, rp.build.ReservedVolumes())
	return r, rp.lookAtOthers(ctx, &r)
}

// lookAtOthers inspects the sharers that will be stopped, and finds those that stopping would
// destroy. It sorts them in the order in which they can be started again.
func (rp *Replacer) lookAtOthers(ctx context.Context, r *replacement) error {
	peers := make(map[string][]string, len(r.Others))
	var others []pending.Other
	for _, o := range r.Others {
		c, err := rp.docker.InspectIfThere(ctx, o.ID)
		if err != nil {
			return err
		}
		if c == nil {
			continue // it has ended by itself
		}
		if c.HostConfig.AutoRemove {
			r.problems = append(r.problems, plan.Problem{
				Kind: plan.ProblemOtherOneShot, Subject: o.Name, Text: fmt.Sprintf("container %s is removed when it stops (--rm), and it shares a volume", o.Name),
			})
		}
		o.Timeout, o.Endpoints = runconfig.StopTimeout(*c), runconfig.EndpointsOf(*c)
		peers[o.ID] = runconfig.PeersOf(*c)
		others = append(others, o)
	}
	r.Others = inOrder(others, peers)
	return nil
}

// inOrder sorts containers so that each comes after those that it depends on.
func inOrder(others []pending.Other, peers map[string][]string) []pending.Other {
	var sorted []pending.Other
	for len(others) > 0 {
		at := slices.IndexFunc(others, func(o pending.Other) bool {
			return !slices.ContainsFunc(others, func(p pending.Other) bool { return p.IsOneOf(peers[o.ID]) })
		})
		at = max(at, 0) // there can be no cycle; if there is, do not hang
		sorted = append(sorted, others[at])
		others = slices.Delete(slices.Clone(others), at, at+1)
	}
	return sorted
}

// renamed finds out whether the captured container was renamed and another one has its name
// now. Then the user has to say which of the two is meant.
func (rp *Replacer) renamed(ctx context.Context, s catalog.Snapshot, old *container.InspectResponse, asked string) ([]plan.Problem, error) {
	if asked != "" || old == nil || old.ID == s.Container.ID {
		return nil, nil
	}
	captured, err := rp.docker.InspectIfThere(ctx, s.Container.ID)
	if err != nil || captured == nil {
		return nil, err
	}
	return []plan.Problem{{
		Kind: plan.ProblemRenamed, Subject: dockerop.ContainerName(*captured),
		Text: fmt.Sprintf("container %s is not the one that was captured, which is named %s now", dockerop.ContainerName(*old), dockerop.ContainerName(*captured)),
	}}, nil
}

// findProblems collects every problem and every note. others are problems that are known
// already.
func (r *replacement) findProblems(around runconfig.Surroundings, others []plan.Problem, o Options, reserved []string) {
	if old := r.Old; old != nil && dockerop.ContainerName(*old) != r.Name {
		r.notes = append(r.notes, plan.Step{Op: plan.OpRenameContainer, Target: dockerop.ContainerName(*old), Reason: "it becomes " + r.Name + ", as it was captured"})
	}
	for i := range r.Volumes {
		v := &r.Volumes[i]
		v.Exists = !around.NoVolume[v.Create.Name]
		delete(around.NoVolume, v.Create.Name) // it will be made
	}
	r.mountAnonymous()
	problems := append(append(slices.Clone(others), r.dead()...), r.unknownVolumes(o.ReadOnly)...)
	for i := range r.Volumes {
		r.Volumes[i].Keep(o.ReadOnly)
	}
	around.Containers = without(around.Containers, r.Old)
	problems = append(problems, around.Problems(r.Spec, r.Name)...)
	if r.Start {
		problems = append(problems, r.Spec.PortProblems(around)...)
		problems = append(problems, r.Spec.AddressProblems(around)...)
	}
	problems = append(problems, r.holders(around, o.StopOthers)...)
	problems = append(problems, r.peerProblems(around)...)
	problems = append(problems, r.unsaved(o)...)
	if o.SkipMissing {
		var left plan.Plan
		left, problems = r.Spec.LeaveOut(problems)
		r.notes = append(r.notes, left...)
	}
	r.notes = append(r.notes, r.kept()...)
	if r.foreign {
		problems = append(problems, around.ForeignProblemsInPlace(r.Spec, r.Volumes, r.Old, o.RestoreOptions, reserved...)...)
	}
	r.problems = problems
}

// dead finds out whether the engine failed to remove the old container. Such a container can
// only be removed, so there would be nothing to roll back to.
func (r *replacement) dead() []plan.Problem {
	if r.Old == nil || !r.Old.State.Dead {
		return nil
	}
	name := dockerop.ContainerName(*r.Old)
	return []plan.Problem{{Kind: plan.ProblemDead, Subject: name, Text: fmt.Sprintf("container %s is dead: the engine could not remove it to the end", name)}}
}

// kept are the volumes that are left as they are.
func (r *replacement) kept() plan.Plan {
	var steps plan.Plan
	for _, v := range r.Volumes {
		if v.Kept != "" {
			steps = append(steps, plan.Step{Op: plan.OpLeaveOut, Target: v.Create.Name, Reason: v.Kept + "; the volume is kept as it is"})
		}
	}
	return steps
}

// without returns the containers other than the old one.
func without(containers []container.Summary, old *container.InspectResponse) []container.Summary {
	return slices.DeleteFunc(slices.Clone(containers), func(c container.Summary) bool {
		return old != nil && c.ID == old.ID
	})
}

// missingVolumes are those that have to be made before the container.
func (r *replacement) missingVolumes() []volume.CreateOptions {
	var missing []volume.CreateOptions
	for _, v := range r.Volumes {
		if !v.Exists && !v.IsAnonymous() {
			missing = append(missing, v.Create)
		}
	}
	return missing
}

// holders finds the running containers that mount what will be written.
func (r *replacement) holders(around runconfig.Surroundings, stopThem bool) []plan.Problem {
	var problems []plan.Problem
	written := r.written()
	r.storage = around.Storage.And(r.missingVolumes())
	for _, c := range around.Containers {
		paused := c.State == container.StatePaused
		used := r.storage.UsesOf(c, written)
		if c.State != container.StateRunning && c.State != container.StateRestarting && !paused || len(used) == 0 {
			continue
		}
		if stopThem {
			r.Others = append(r.Others, pending.Other{ID: c.ID, Name: dockerop.SummaryName(c), Paused: paused})
			continue
		}
		problems = append(problems, plan.Problem{
			Kind: plan.ProblemVolumeInUse, Subject: used[0],
			Text: fmt.Sprintf("volume %s is in use by container %s", used[0], dockerop.SummaryName(c)),
		})
	}
	return problems
}

// peers returns the sharers that must run before the container can start, and those that they
// need themselves.
func (r *replacement) peers() []pending.Other {
	words := r.Spec.Peers()
	for i, o := range slices.Backward(r.Others) {
		if o.IsOneOf(words) {
			return r.Others[:i+1]
		}
	}
	return nil
}

// unsaved finds what the safety snapshot would not hold and, without one, what could not be
// rolled back.
func (r *replacement) unsaved(o Options) []plan.Problem {
	if r.Old == nil {
		return nil
	}
	if o.NoSafety {
		if !runconfig.IsOneShot(*r.Old) {
			return nil
		}
		return []plan.Problem{{
			Kind: plan.ProblemOneShot, Subject: dockerop.ContainerName(*r.Old),
			Text: fmt.Sprintf("container %s is removed when it stops (--rm), and without a safety snapshot it could not be made again", dockerop.ContainerName(*r.Old)),
		}}
	}
	var problems []plan.Problem
	mounted := dockerop.MountedVolumes(*r.Old)
	for _, v := range r.Volumes {
		if (v.Exists || v.Elsewhere) && v.Archive != nil && !slices.Contains(mounted, v.Create.Name) {
			problems = append(problems, plan.Problem{
				Kind: plan.ProblemUnsaved, Subject: v.Create.Name,
				Text: fmt.Sprintf("volume %s is not mounted by container %s now, so the safety snapshot would not hold what is in it", v.Create.Name, dockerop.ContainerName(*r.Old)),
			})
		}
	}
	return problems
}

// peerProblems finds containers that the new one needs in order to start, and that do not run.
func (r *replacement) peerProblems(around runconfig.Surroundings) []plan.Problem {
	var problems []plan.Problem
	for _, peer := range r.Spec.Peers() {
		c := around.Container(peer)
		if !r.Start || c == nil || c.State == container.StateRunning || c.State == container.StatePaused {
			continue
		}
		problems = append(problems, plan.Problem{
			Kind: plan.ProblemNoContainer, Subject: peer, Text: r.Spec.Needs(peer) + ", which does not run",
		})
	}
	return problems
}
