package replace

import (
	"path"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// noteBinds reports the bind mounts of a container that is restored in place whose content is
// not restored, because the snapshot does not hold it.
func (m *member) noteBinds(p plan.Progress) {
	if m.options.keeps() || !m.foreign && runconfig.KnowsBinds(m.Spec.Config.Labels) {
		return
	}
	binds := m.Spec.Binds()
	configured := m.Spec.Destinations()
	for _, captured := range m.Snapshot.Mounts {
		if len(m.Spec.Host.VolumesFrom) > 0 && captured.Type == string(mount.TypeBind) && !configured[path.Clean(captured.Destination)] {
			binds = append(binds, runconfig.Bind{Source: captured.Source, Destination: captured.Destination})
		}
	}
	for _, b := range binds {
		if runconfig.HoldsBind(m.Snapshot.Mounts, b.Destination) {
			continue // it goes back, or the plan says that it stays
		}
		note := b.Note() + " and stays as it is"
		if m.foreign {
			note += runconfig.NoteElsewhere
		}
		p.Note("check", note)
	}
}

// noteLost says what does not go back of a snapshot that has lost its image.
func (m *member) noteLost(p plan.Progress) {
	if m.options.Lost {
		p.Note("check", "the root filesystem that snapshot "+m.Snapshot.Title()+" held is gone with its image: container "+m.Name+" keeps the one that it has, and only its volumes go back")
	}
}
