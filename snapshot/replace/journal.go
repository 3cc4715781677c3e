package replace

import (
	"context"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// newJournal describes the state before the restore. ids are those of the safety snapshots, one for
// each member.
func newJournal(g *group, ids []labels.ID) pending.Journal {
	j := pending.Journal{Others: g.others, Holds: g.mounted(), Keeps: g.keeps, Live: g.live, Copy: g.journalCopy()}
	for i, m := range g.members {
		entry := m.entry()
		if !g.noSafety {
			entry.Safety = ids[i] //nolint:gosec // there is one for each member
		}
		j.Members = append(j.Members, entry)
		for _, v := range m.Volumes {
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
	}
	j.Worker = j.WorkerName(ids[0])
	return j
}

// entry describes the old container in the journal.
func (m *member) entry() pending.Member {
	j := pending.Member{Name: m.Name, Snapshot: m.Snapshot.ID, Starts: m.Start}
	if m.Old == nil {
		return j
	}
	j.Old, j.OldName = m.Old.ID, dockerop.ContainerName(*m.Old)
	j.Aside = pending.AsideName(j.OldName, j.Old)
	j.Paused = m.Old.State.Paused
	j.Running = m.Old.State.Running || m.Old.State.Restarting
	j.OneShot = runconfig.IsOneShot(*m.Old)
	j.Timeout = runconfig.StopTimeout(*m.Old)
	if asked := m.options.StopTimeout; asked != nil {
		j.Timeout = max(0, *asked)
	}
	j.Endpoints = runconfig.EndpointsOf(*m.Old)
	if policy := m.Old.HostConfig.RestartPolicy; !policy.IsNone() && !m.options.Live { // who is only frozen keeps it
		j.Policy, j.Retries = string(policy.Name), policy.MaximumRetryCount
	}
	return j
}

// lockOptions describes the lock of a restore in place, without its journal. The lock mounts the
// volumes, so that the engine keeps those of a container that it removes on stop (--rm). It removes no directory of the
// host.
func lockOptions(j pending.Journal) volumebackup.LockOptions {
	present := slices.DeleteFunc(dockerop.Distinct(j.Holds, j.Volumes), func(key string) bool { return slices.Contains(j.Found, key) || labels.IsPathKey(key) })
	return volumebackup.LockOptions{
		Containers: j.Locks(), Purpose: "restore " + strings.Join(j.Snapshots(), " ") + " in place", Volumes: present,
	}
}

// lockWithJournal takes the locks of a restore in place with the journal on the last, and records the
// journal in the store. If it returns a lock together with an error, that lock is held.
func (rp *Replacer) lockWithJournal(ctx context.Context, j pending.Journal, o volumebackup.LockOptions, p plan.Progress) (archives.Lock, error) {
	text, err := j.Encode()
	if err != nil {
		return nil, err
	}
	o.Journal = map[string]string{pending.LabelJournal: text}
	lock, err := rp.volumes.TakeLock(ctx, o, archives.Progress(p))
	if err != nil {
		return nil, err
	}
	return lock, lock.RecordJournal(ctx, text)
}
