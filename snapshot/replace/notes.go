package replace

import (
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// noteKept reports the bind mounts of a container that is restored in place: their content is
// not restored.
func (r *replacement) noteKept(p plan.Progress) {
	if !r.foreign && runconfig.KnowsBinds(r.Spec.Config.Labels) {
		return
	}
	binds := r.Spec.Binds()
	configured := r.Spec.Destinations()
	for _, m := range r.Snapshot.Mounts {
		if len(r.Spec.Host.VolumesFrom) > 0 && m.Type == string(mount.TypeBind) && !configured[m.Destination] {
			binds = append(binds, runconfig.Bind{Source: m.Source, Destination: m.Destination})
		}
	}
	for _, b := range binds {
		p.Note("check", b.Note()+" and stays as it is")
	}
}
