package copies

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// noteBinds says what became of the bind mounts in a copy.
func (r restore) noteBinds(p plan.Progress) {
	if !r.foreign && runconfig.KnowsBinds(r.spec.Config.Labels) {
		return
	}
	for _, note := range r.bindNotes {
		p.Send(note)
	}
}
