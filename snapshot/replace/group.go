package replace

import (
	"context"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
)

// group is the plan of a restore in place: all containers that it replaces, and what concerns them
// together.
type group struct {
	shared
	members []*member       // in the order in which the old containers can be started
	others  []pending.Other // running containers that hold the volumes, to be stopped meanwhile
	storage storage.Map     // of the engine's volumes, and of those that will be made
}

// findAll finds out for each of the options which container it is about.
func (rp *Replacer) findAll(ctx context.Context, all []Options, how shared, p plan.Progress) (*group, error) {
	g := &group{shared: how}
	for _, o := range all {
		m, err := rp.find(ctx, o, p)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(g.members, func(other *member) bool { return other.Name == m.Name || m.Old != nil && other.isOld(m.Old.ID) }) {
			return nil, fmt.Errorf("container %s is named twice", m.Name)
		}
		g.members = append(g.members, m)
	}
	return g, nil
}

// plan decides everything, and makes nothing.
func (rp *Replacer) plan(ctx context.Context, g *group, p plan.Progress) error {
	for _, m := range g.members {
		p.Status("check", "checking what "+m.Snapshot.Title()+" needs")
		if err := rp.observe(ctx, m, p); err != nil {
			return err
		}
	}
	if err := g.chooseParts(); err != nil {
		return err
	}
	for _, m := range g.members {
		if err := rp.findDependents(ctx, g, m, p); err != nil {
			return err
		}
		if err := rp.renamed(ctx, m); err != nil {
			return err
		}
	}
	g.findProblems(rp.build.ReservedVolumes())
	return rp.lookAtOthers(ctx, g)
}

// findProblems collects the problems of all members.
func (g *group) findProblems(reserved []string) {
	g.members = inOrder(g.members, (*member).followed)
	for _, m := range g.members {
		m.placeVolumes()
	}
	g.shareVolumes()
	g.storage = g.members[0].around.Storage.And(g.missingVolumes())
	for _, m := range g.members {
		m.findProblems(g, reserved)
	}
}

// problems are those of all members, each once.
func (g *group) problems() []plan.Problem {
	var all []plan.Problem
	for _, m := range g.members {
		for _, p := range m.problems {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// followed tells whether the old container of m can only be started after that of another.
func (m *member) followed(other *member) bool {
	return m.Old != nil && slices.ContainsFunc(runconfig.PeersOf(*m.Old), other.isOld)
}

// follows tells whether the new container of m can only be made and started after that of another.
func (m *member) follows(other *member) bool {
	return slices.ContainsFunc(m.Spec.Relations(), other.hasName)
}

// making are the members in the order in which the new containers can be made and started.
func (g *group) making() []*member { return inOrder(g.members, (*member).follows) }

// inOrder sorts containers so that each comes after those that it follows.
func inOrder[T any](all []T, follows func(T, T) bool) []T {
	var sorted []T
	for len(all) > 0 {
		at := slices.IndexFunc(all, func(one T) bool {
			return !slices.ContainsFunc(all, func(other T) bool { return follows(one, other) })
		})
		at = max(at, 0) // there can be no cycle; if there is, do not hang
		sorted = append(sorted, all[at])
		all = slices.Delete(slices.Clone(all), at, at+1)
	}
	return sorted
}

// shareVolumes leaves each volume that several members mount to one of them: the first that restores
// it or, if none does, the first that mounts it. What they restore must be the same.
func (g *group) shareVolumes() {
	owner := map[string]*runconfig.PlacedVolume{}
	owns := map[string]*member{}
	for _, m := range g.members {
		for i := range m.mounts {
			v := &m.mounts[i]
			name := v.Create.Name
			first := owner[name]
			switch {
			case first == nil || first.Archive == nil && v.Archive != nil:
				owner[name], owns[name] = v, m
			case v.Archive != nil && v.Archive.Root != first.Archive.Root:
				m.problem(plan.ProblemContents, name, fmt.Sprintf("snapshots %s and %s hold different contents of %s", owns[name].Snapshot.Title(), m.Snapshot.Title(), labels.DescribeKey(name)))
			}
		}
	}
	for _, m := range g.members {
		m.Volumes = slices.DeleteFunc(slices.Clone(m.mounts), func(v runconfig.PlacedVolume) bool { return !v.IsAnonymous() && owns[v.Create.Name] != m })
	}
}

// without returns the containers other than the old ones.
func (g *group) without(containers []container.Summary) []container.Summary {
	return slices.DeleteFunc(slices.Clone(containers), func(c container.Summary) bool {
		return slices.ContainsFunc(g.members, func(m *member) bool { return m.isOld(c.ID) })
	})
}

// namesBeside are the names and IDs of the members other than m.
func (g *group) namesBeside(m *member) []string {
	var names []string
	for _, other := range g.members {
		if other == m {
			continue
		}
		names = append(names, other.Name, other.Snapshot.Container.ID)
		if other.Old != nil {
			names = append(names, other.Old.ID, dockerop.ContainerName(*other.Old))
		}
	}
	return names
}

// gone are the names and IDs of the members whose containers are gone.
func (g *group) gone() []string {
	var names []string
	for _, m := range g.members {
		if m.Old == nil {
			names = append(names, m.Name, m.Snapshot.Container.ID)
		}
	}
	return names
}

// willRun tells whether a container runs when the new ones are started. Whether there is one at all is
// another question.
func (g *group) willRun(peer string, around runconfig.Surroundings) bool {
	if at := slices.IndexFunc(g.members, func(m *member) bool { return m.hasName(peer) }); at >= 0 {
		return g.members[at].Start
	}
	c := around.Container(peer)
	return c == nil || c.State == container.StateRunning || c.State == container.StatePaused
}

// current returns what a container is called that a captured configuration names, now that the new
// ones are being made.
func (g *group) current(word string) string {
	for _, m := range g.members {
		if m.newID != "" && m.hasName(word) {
			return m.newID
		}
	}
	return word
}

// mountedKeys are the keys of all volumes and bind mounts of the old containers.
func (g *group) mountedKeys() []string {
	var keys []string
	for _, m := range g.members {
		if m.Old != nil {
			keys = dockerop.Distinct(keys, dockerop.MountedKeys(*m.Old))
		}
	}
	return keys
}

// mounted are the volumes that the old containers mount.
func (g *group) mounted() []string {
	var names []string
	for _, m := range g.members {
		if m.Old != nil {
			names = dockerop.Distinct(names, dockerop.MountedVolumes(*m.Old))
		}
	}
	return names
}

// missingVolumes are those that have to be made before the containers.
func (g *group) missingVolumes() []volume.CreateOptions {
	var missing []volume.CreateOptions
	for _, m := range g.members {
		for _, v := range m.Volumes {
			if !v.Exists && !v.IsAnonymous() {
				missing = append(missing, v.Create)
			}
		}
	}
	return missing
}

// written are the volumes whose content will be changed.
func (g *group) written() []string {
	var names []string
	for _, m := range g.members {
		names = append(names, m.written()...)
	}
	return names
}

// findHolders finds the running containers that mount what a member writes. They are to be stopped, or
// they are problems.
func (g *group) findHolders(m *member, containers []container.Summary) {
	if !g.stopOthers {
		m.problems = append(m.problems, g.inUse(containers, m.written())...)
		return
	}
	for _, c := range g.usersOf(containers, m.written()) {
		if !slices.ContainsFunc(g.others, func(o pending.Other) bool { return o.ID == c.ID }) {
			g.others = append(g.others, pending.Other{ID: c.ID, Name: dockerop.SummaryName(c), Paused: c.State == container.StatePaused})
		}
	}
}

// usersOf are those of the containers that run and use one of the volumes.
func (g *group) usersOf(containers []container.Summary, volumes []string) []container.Summary {
	return slices.DeleteFunc(slices.Clone(containers), func(c container.Summary) bool {
		runs := c.State == container.StateRunning || c.State == container.StateRestarting || c.State == container.StatePaused
		return !runs || g.isCopy(c.ID) || len(g.storage.UsesOf(c, volumes)) == 0
	})
}

// inUse are the problems with containers that use one of the volumes.
func (g *group) inUse(containers []container.Summary, volumes []string) []plan.Problem {
	var problems []plan.Problem
	for _, c := range g.usersOf(containers, volumes) {
		used := g.storage.UsesOf(c, volumes)[0]
		problems = append(problems, plan.Problem{
			Kind: plan.ProblemVolumeInUse, Subject: used, Text: fmt.Sprintf("%s is in use by container %s", labels.DescribeKey(used), dockerop.SummaryName(c)),
		})
	}
	return problems
}

// lookAtOthers inspects the sharers that will be stopped, and finds those that stopping would
// destroy. It sorts them in the order in which they can be started again.
func (rp *Replacer) lookAtOthers(ctx context.Context, g *group) error {
	peers := make(map[string][]string, len(g.others))
	var others []pending.Other
	for _, o := range g.others {
		c, err := rp.docker.InspectIfThere(ctx, o.ID)
		if err != nil {
			return err
		}
		if c == nil {
			continue // it has ended by itself
		}
		if c.HostConfig.AutoRemove {
			g.members[0].problem(plan.ProblemOtherOneShot, o.Name, fmt.Sprintf("container %s is removed when it stops (--rm), and it shares a volume", o.Name))
		}
		o.Timeout, o.Endpoints = runconfig.StopTimeout(*c), runconfig.EndpointsOf(*c)
		peers[o.ID] = runconfig.PeersOf(*c)
		others = append(others, o)
	}
	g.others = inOrder(others, func(o, other pending.Other) bool { return other.IsOneOf(peers[o.ID]) })
	return nil
}

// peers returns the sharers that must run before the containers can start, and those that they
// need themselves.
func (g *group) peers() []pending.Other {
	var words []string
	for _, m := range g.members {
		if m.Start {
			words = append(words, m.Spec.Peers()...)
		}
	}
	for i, o := range slices.Backward(g.others) {
		if o.IsOneOf(words) {
			return g.others[:i+1]
		}
	}
	return nil
}

// running are the IDs of the containers that write to the volumes, without those that
// their users have paused: nobody who finds this interrupted may thaw them.
func (g *group) running() []string {
	var ids []string
	for _, m := range g.members {
		if m.Old != nil && !m.Old.State.Paused {
			ids = append(ids, m.Old.ID)
		}
	}
	for _, o := range g.others {
		if !o.Paused {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// refuse is the error for what cannot be done as asked.
func (g *group) refuse(problems []plan.Problem) error {
	return &plan.ProblemsError{Problems: problems, Promote: g.promoted() != nil}
}
