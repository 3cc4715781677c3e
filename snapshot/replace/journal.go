package replace

import (
	"context"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// newJournal describes the state before the restore. An empty safety means that no safety
// snapshot will be taken.
func newJournal(r replacement, safety labels.ID) pending.Journal {
	j := pending.Journal{Name: r.Name, Snapshot: r.Snapshot.ID, Safety: safety, Others: r.Others}
	for _, v := range r.Volumes {
		switch {
		case v.IsAnonymous(): // the engine makes and removes it with the container
		case !v.Exists && v.Elsewhere && v.Archive != nil: // a rollback keeps it: some drivers would delete its storage
			j.Volumes, j.Found = append(j.Volumes, v.Create.Name), append(j.Found, v.Create.Name)
		case !v.Exists:
			j.Made = append(j.Made, v.Create.Name)
		case v.Archive != nil:
			j.Volumes = append(j.Volumes, v.Create.Name)
		}
	}
	if r.Old == nil {
		return j
	}
	j.Old, j.OldName = r.Old.ID, dockerop.ContainerName(*r.Old)
	j.Aside = pending.AsideName(j.OldName, j.Old)
	j.Paused = r.Old.State.Paused
	j.Running = r.Old.State.Running || r.Old.State.Restarting
	j.OneShot = runconfig.IsOneShot(*r.Old)
	j.Timeout = runconfig.StopTimeout(*r.Old)
	j.Holds = dockerop.MountedVolumes(*r.Old)
	j.Endpoints = runconfig.EndpointsOf(*r.Old)
	if policy := r.Old.HostConfig.RestartPolicy; !policy.IsNone() {
		j.Policy, j.Retries = string(policy.Name), policy.MaximumRetryCount
	}
	return j
}

// lockOptions describes the lock of a restore in place, without its journal. The lock mounts the
// volumes, so that the engine keeps those of a container that it removes on stop (--rm).
func lockOptions(j pending.Journal) volumebackup.LockOptions {
	present := slices.DeleteFunc(dockerop.Distinct(j.Holds, j.Volumes), func(name string) bool { return slices.Contains(j.Found, name) })
	return volumebackup.LockOptions{
		Containers: []string{j.Lock()}, Purpose: "restore " + string(j.Snapshot) + " in place", Volumes: present,
	}
}

// lockWithJournal takes the lock of a restore in place with the journal on it, and records the
// journal in the store. If it returns a lock together with an error, that lock is held.
func (rp *Replacer) lockWithJournal(ctx context.Context, j pending.Journal, o volumebackup.LockOptions) (archives.Lock, error) {
	text, err := j.Encode()
	if err != nil {
		return nil, err
	}
	o.Journal = map[string]string{pending.LabelJournal: text}
	lock, err := rp.volumes.TakeLock(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	return lock, lock.RecordJournal(ctx, text)
}
