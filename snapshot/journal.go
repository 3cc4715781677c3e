package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// newJournal says how everything is now. An empty safety means that there will
// be no safety snapshot.
func newJournal(r replacement, safety labels.ID) pending.Journal {
	j := pending.Journal{Name: r.name, Snapshot: r.snapshot.ID, Safety: safety, Others: r.others}
	for _, v := range r.volumes {
		switch {
		case v.isAnonymous(): // it comes and goes with the container
		case !v.exists && v.elsewhere && v.archive != nil: // it stays: with some drivers its storage would go with it
			j.Volumes, j.Found = append(j.Volumes, v.create.Name), append(j.Found, v.create.Name)
		case !v.exists:
			j.Made = append(j.Made, v.create.Name)
		case v.archive != nil:
			j.Volumes = append(j.Volumes, v.create.Name)
		}
	}
	if r.old == nil {
		return j
	}
	j.Old, j.OldName = r.old.ID, dockerop.ContainerName(*r.old)
	j.Aside = pending.AsideName(j.OldName, j.Old)
	j.Paused = r.old.State.Paused
	j.Running = r.old.State.Running || r.old.State.Restarting
	j.Dead = r.isDead()
	j.OneShot = isOneShot(*r.old)
	j.Timeout = stopTimeout(*r.old)
	j.Holds = dockerop.MountedVolumes(*r.old)
	j.Endpoints = configuredEndpoints(*r.old)
	if policy := r.old.HostConfig.RestartPolicy; !policy.IsNone() && !j.Dead {
		j.Policy, j.Retries = string(policy.Name), policy.MaximumRetryCount
	}
	return j
}

// configuredEndpoints are a container's endpoints as they could be made again.
func configuredEndpoints(c container.InspectResponse) dockerop.Endpoints {
	if c.NetworkSettings == nil {
		return nil
	}
	sp := spec{config: *c.Config, host: *c.HostConfig, endpoints: c.NetworkSettings.Networks}
	sp.keepEndpoints(c.ID)
	return sp.endpoints
}

// isOneShot tells whether a container is gone once it has stopped. One that was
// made with --rm and does not run is not.
func isOneShot(c container.InspectResponse) bool { return c.HostConfig.AutoRemove && c.State.Running }

// lockOptions describe the worker that holds the lock. It has the volumes mounted:
// so the engine keeps those of a container that it removes when it stops.
func lockOptions(j pending.Journal) (volumebackup.RestoreOptions, error) {
	present := slices.DeleteFunc(dockerop.Distinct(j.Holds, j.Volumes), func(name string) bool { return slices.Contains(j.Found, name) })
	if err := j.Check(); err != nil {
		return volumebackup.RestoreOptions{}, fmt.Errorf("write journal: %w", err)
	}
	text, err := json.Marshal(j)
	if err != nil {
		return volumebackup.RestoreOptions{}, fmt.Errorf("write journal: %w", err)
	}
	return volumebackup.RestoreOptions{
		Lock: j.Lock(), Purpose: "restore " + string(j.Snapshot) + " in place", Volumes: present,
		Journal: map[string]string{pending.LabelJournal: string(text)},
	}, nil
}
