package replace

import (
	"fmt"
	"path"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// mountAnonymous has the engine make the anonymous volumes that are gone together with the
// container.
func (m *member) mountAnonymous() {
	mounts := m.Snapshot.Mounts
	for i := range m.mounts {
		v := &m.mounts[i]
		at := slices.IndexFunc(mounts, func(mount labels.Mount) bool { return mount.Key() == v.Original })
		if !v.Exists && m.Spec.BecomesAnonymous(mounts[at], mounts) {
			v.Destination = mounts[at].Destination
			m.Spec.MountAnonymous(mounts[at])
		}
	}
}

// anonymous are the volumes that the engine makes together with the container.
func (m *member) anonymous() []runconfig.NewVolume {
	var all []runconfig.NewVolume
	for _, v := range m.Volumes {
		if v.IsAnonymous() {
			all = append(all, v.NewVolume)
		}
	}
	return all
}

// places are the names of the volumes that captured ones are restored into.
func (m *member) places() []string {
	names := make([]string, len(m.mounts))
	for i, v := range m.mounts {
		names[i] = v.Create.Name
	}
	return names
}

// unknownVolumes finds volumes that were named, and that the snapshot does not hold.
func (m *member) unknownVolumes(named []string) {
	for _, name := range named {
		held := slices.ContainsFunc(m.mounts, func(v runconfig.PlacedVolume) bool {
			return v.Archive != nil && (v.Create.Name == name || v.Original == name)
		})
		if !held {
			m.problem(plan.ProblemNotHeld, name, fmt.Sprintf("snapshot %s does not hold the content of %s", m.Snapshot.Title(), labels.DescribeKey(name)))
		}
	}
}

// relativeMounts finds volumes that an image declares with a relative path (VOLUME data). The engine makes and mounts them by
// itself, but mounts none there that exists already.
func (m *member) relativeMounts() {
	for _, v := range m.Volumes {
		at := slices.IndexFunc(m.Snapshot.Mounts, func(mount labels.Mount) bool { return mount.Key() == v.Original })
		if at < 0 || v.IsAnonymous() || path.IsAbs(m.Snapshot.Mounts[at].Destination) {
			continue
		}
		destination := m.Snapshot.Mounts[at].Destination
		m.problem(plan.ProblemRelative, destination, fmt.Sprintf("container %s has a volume at the relative path %s, where the engine mounts none that is there already", m.Name, destination))
	}
}

// missingBinds finds directories of the host that are to get their content back, and are gone. If what is missing may be
// left out, they are.
func (m *member) missingBinds() {
	configured := m.Spec.Binds()
	m.mounts = slices.DeleteFunc(m.mounts, func(v runconfig.PlacedVolume) bool {
		key := v.Create.Name
		if !labels.IsPathKey(key) || v.Exists {
			return false
		}
		// Of what the configuration mounts, this is told anyway, and left out with it.
		isTold := !m.options.keeps() && slices.ContainsFunc(configured, func(b runconfig.Bind) bool { return b.Source == key })
		if !isTold && (m.options.keeps() || !m.options.SkipMissing) {
			m.problem(plan.ProblemNoBindSource, key, fmt.Sprintf("the source of bind mount %s, which the snapshot holds the content of, does not exist on the engine's host", key))
		}
		return true
	})
}

// writtenBinds are the directories of the host whose content will be changed.
func (g *group) writtenBinds() []string {
	paths := []string{}
	for _, key := range g.written() {
		if labels.IsPathKey(key) {
			paths = append(paths, key)
		}
	}
	return paths
}

// written are the volumes whose content will be changed.
func (m *member) written() []string {
	var names []string
	for _, v := range m.Volumes {
		if v.Archive != nil && !v.IsAnonymous() {
			names = append(names, v.Create.Name)
		}
	}
	return names
}

// exclusions are those of the safety snapshots: of each volume they leave out what the restore leaves alone, and
// nothing that the restore can change.
func (g *group) exclusions() capture.Exclude {
	e := capture.Exclude{Of: map[string]labels.Exclusions{}}
	for _, m := range g.members {
		for _, v := range m.Volumes {
			if v.Archive == nil || v.Archive.Excluded.IsEmpty() {
				continue
			}
			left := *v.Archive.Excluded
			left.Entries = 0
			left.Kept = &labels.KeptArchive{Snapshot: m.Snapshot.ID, Index: v.Archive.Index, Root: v.Archive.Root}
			e.Of[v.Create.Name] = left
		}
	}
	return e
}
