package replace

import (
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// mountAnonymous has the engine make the anonymous volumes that are gone together with the
// container.
func (r *replacement) mountAnonymous() {
	mounts := r.Snapshot.Mounts
	for i := range r.Volumes {
		v := &r.Volumes[i]
		at := slices.IndexFunc(mounts, func(m labels.Mount) bool { return m.Type == string(mount.TypeVolume) && m.Name == v.Original })
		if !v.Exists && r.Spec.BecomesAnonymous(mounts[at], mounts) {
			v.Destination = mounts[at].Destination
			r.Spec.MountAnonymous(mounts[at])
		}
	}
}

// anonymous are the volumes that the engine makes together with the container.
func (r *replacement) anonymous() []runconfig.NewVolume {
	var all []runconfig.NewVolume
	for _, v := range r.Volumes {
		if v.IsAnonymous() {
			all = append(all, v.NewVolume)
		}
	}
	return all
}

// places are the names of the volumes that captured ones are restored into.
func (r *replacement) places() []string {
	names := make([]string, len(r.Volumes))
	for i, v := range r.Volumes {
		names[i] = v.Create.Name
	}
	return names
}

// unknownVolumes finds volumes that were named, and that the snapshot does not hold.
func (r *replacement) unknownVolumes(named []string) []plan.Problem {
	var problems []plan.Problem
	for _, name := range named {
		held := slices.ContainsFunc(r.Volumes, func(v runconfig.PlacedVolume) bool {
			return v.Archive != nil && (v.Create.Name == name || v.Original == name)
		})
		if !held {
			problems = append(problems, plan.Problem{
				Kind: plan.ProblemNotHeld, Subject: name, Text: fmt.Sprintf("snapshot %s does not hold the content of a volume %s", r.Snapshot.ID, name),
			})
		}
	}
	return problems
}

// written are the volumes whose content will be changed.
func (r *replacement) written() []string {
	var names []string
	for _, v := range r.Volumes {
		if v.Archive != nil && !v.IsAnonymous() {
			names = append(names, v.Create.Name)
		}
	}
	return names
}
