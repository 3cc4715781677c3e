package snapshot

import (
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// noteKept says the same of the bind mounts of a container that is restored in
// place.
func (r *replacement) noteKept(p plan.Progress) {
	if !r.foreign && runconfig.KnowsBinds(r.spec.Config.Labels) {
		return
	}
	binds := r.spec.Binds()
	configured := r.spec.Destinations()
	for _, m := range r.snapshot.Mounts {
		if len(r.spec.Host.VolumesFrom) > 0 && m.Type == string(mount.TypeBind) && !configured[m.Destination] {
			binds = append(binds, runconfig.Bind{Source: m.Source, Destination: m.Destination})
		}
	}
	for _, b := range binds {
		p.Note("check", b.Note()+" and stays as it is")
	}
}
