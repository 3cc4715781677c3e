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

// VolumesOf returns the keys of captured volumes, and of the bind mounts whose content is captured, sorted.
func VolumesOf(mounts []labels.Mount) []string {
	var keys []string
	for _, m := range mounts {
		key := m.Key()
		if key != "" && (m.Type == string(mount.TypeVolume) || m.Skipped == "") {
			keys = append(keys, key)
		}
	}
	return dockerop.Distinct(keys)
}

// Scope is the containers and volumes that an operation concerns.
type Scope struct {
	Words   []string // names and IDs of its containers; "" means any container
	Volumes []string // keys of the volumes and bind mounts that it reads or writes
}

// Of returns the scope with the names of container c added.
func (s Scope) Of(c container.InspectResponse) Scope {
	s.Words = append(slices.Clone(s.Words), c.ID, dockerop.ContainerName(c))
	return s
}

// Choose returns the restores in place in the scope, of those that workers have journals of. A
// journal that cannot be read is an error if it is about the scope's own container, and else a
// warning.
func (s Scope) Choose(workers []Worker, p plan.Progress) ([]Operation, error) {
	var pending []Operation
	for _, w := range workers {
		if _, ok := w.Labels[LabelJournal]; !ok {
			continue
		}
		j, err := JournalOf(w)
		switch {
		case err != nil && s.Locks(w):
			return nil, err
		case err != nil:
			p.Warn("check", fmt.Sprintf("worker %s is left alone: %v", dockerop.SummaryName(w.Summary), err))
		case j.IsAbout(s.Words) || j.isOn(s.Volumes):
			pending = append(pending, Operation{w, j})
		}
	}
	return pending, nil
}

// Locks tells by the name of a worker whether it holds, or held, the lock of a container in the
// scope.
func (s Scope) Locks(w Worker) bool {
	return slices.ContainsFunc(s.Words, func(word string) bool {
		return word != "" && (volumebackup.IsLockOf(dockerop.SummaryName(w.Summary), word) || volumebackup.IsLockOf(dockerop.SummaryName(w.Summary), Member{Name: word}.Lock()))
	})
}

// IsServedBy tells whether a worker works for a container in the scope.
func (s Scope) IsServedBy(w Worker) bool {
	if slices.Contains(s.Words, "") || s.Locks(w) { // "" means any
		return true
	}
	if _, isReplace := w.Labels[LabelJournal]; isReplace {
		j, err := JournalOf(w)
		return err == nil && j.IsAbout(s.Words)
	}
	frozen, err := volumebackup.FrozenBy(w.Labels)
	return err == nil && slices.ContainsFunc(frozen, func(id string) bool { return slices.Contains(s.Words, id) })
}

// chooseRivals returns the restores in place in the scope that the caller has to wait for.
func (s Scope) chooseRivals(workers []Worker, p plan.Progress) ([]Operation, error) {
	rivals, err := s.Choose(workers, p)
	return slices.DeleteFunc(rivals, Operation.IsLeftover), err
}
