package capture

import (
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// noteSwarm notes that a snapshot of a Swarm task does not hold all that the task has.
func noteSwarm(name string, containerLabels map[string]string, p plan.Progress) {
	if service, isTask := catalog.SwarmService(containerLabels); isTask {
		p.Note("inspect", "container "+name+" is a task of Swarm service "+service+": its secrets and configs are not in the snapshot")
	}
}

// noteCaptured notes for each bind mount whose content is not in the snapshot that it is not.
func noteCaptured(mounts []labels.Mount, containerLabels map[string]string, p plan.Progress) {
	if runconfig.KnowsBinds(containerLabels) {
		return
	}
	for _, m := range mounts {
		if m.Type == string(mount.TypeBind) && m.Skipped != "" {
			p.Note("inspect", runconfig.Bind{Source: m.Source, Destination: m.Destination}.Note()+", and not portable")
		}
	}
}
