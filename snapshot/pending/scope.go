package pending

import (
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// VolumesOf are the names of captured volumes.
func VolumesOf(mounts []labels.Mount) []string {
	var names []string
	for _, m := range mounts {
		if m.Type == string(mount.TypeVolume) && m.Name != "" {
			names = append(names, m.Name)
		}
	}
	return dockerop.Distinct(names)
}

// Scope is what an operation is about.
type Scope struct {
	Words   []string // names and IDs of its container
	Volumes []string // that it reads or writes
}

// Of is what an operation on a container is about.
func (c Scope) Of(found container.InspectResponse) Scope {
	c.Words = append(slices.Clone(c.Words), found.ID, dockerop.ContainerName(found))
	return c
}

// Choose finds the restores in place that workers stand for and that are about the
// same. One that cannot be read stands in nobody's way but its own container's.
func (c Scope) Choose(workers []Worker, p plan.Progress) ([]Operation, error) {
	var pending []Operation
	for _, w := range workers {
		if _, ok := w.Labels[LabelJournal]; !ok {
			continue
		}
		j, err := JournalOf(w)
		switch {
		case err != nil && c.Locks(w):
			return nil, err
		case err != nil:
			p.Warn("check", fmt.Sprintf("worker %s is left alone: %v", dockerop.SummaryName(w.Summary), err))
		case j.IsAbout(c.Words) || j.isOn(c.Volumes):
			pending = append(pending, Operation{w, j})
		}
	}
	return pending, nil
}

// Locks tells by the name of a worker whether it locks, or has locked, the
// container.
func (c Scope) Locks(w Worker) bool {
	return slices.ContainsFunc(c.Words, func(word string) bool {
		return word != "" && (volumebackup.IsLockOf(dockerop.SummaryName(w.Summary), word) || volumebackup.IsLockOf(dockerop.SummaryName(w.Summary), Journal{Name: word}.Lock()))
	})
}

// IsServedBy tells whether a worker works for one of the containers.
func (c Scope) IsServedBy(w Worker) bool {
	if slices.Contains(c.Words, "") || c.Locks(w) { // "": whichever
		return true
	}
	if _, isReplace := w.Labels[LabelJournal]; isReplace {
		j, err := JournalOf(w)
		return err == nil && j.IsAbout(c.Words)
	}
	frozen, err := volumebackup.FrozenBy(w.Labels)
	return err == nil && slices.ContainsFunc(frozen, func(id string) bool { return slices.Contains(c.Words, id) })
}

// chooseRivals finds the restores in place that have to be waited for.
func (c Scope) chooseRivals(workers []Worker, p plan.Progress) ([]Operation, error) {
	rivals, err := c.Choose(workers, p)
	return slices.DeleteFunc(rivals, Operation.IsLeftover), err
}
