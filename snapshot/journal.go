package snapshot

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// labelJournal stands on the worker that holds the lock of a restore in place.
// It is written before anything is touched, and says what has to be known to
// take everything back; what was done already is observed, not written down.
const labelJournal = labels.Prefix + "worker.replace"

// journal is the value of [labelJournal].
type journal struct {
	Name     string    `json:"name"`               // of the container, before and after
	Old      string    `json:"old,omitempty"`      // its ID; empty: it was gone
	OldName  string    `json:"old_name,omitempty"` // the old container's own name
	Aside    string    `json:"aside,omitempty"`    // what it is called meanwhile
	Running  bool      `json:"running,omitempty"`  // it was running
	Paused   bool      `json:"paused,omitempty"`   // and paused
	Dead     bool      `json:"dead,omitempty"`     // the engine could not remove it to the end
	OneShot  bool      `json:"one_shot,omitempty"` // it runs, and the engine removes it when it stops (--rm)
	Timeout  int       `json:"timeout,omitempty"`  // seconds that it has to stop
	Policy   string    `json:"policy,omitempty"`   // its restart policy, which is switched off meanwhile
	Retries  int       `json:"retries,omitempty"`
	Snapshot labels.ID `json:"snapshot"`          // what is being restored
	Safety   labels.ID `json:"safety,omitempty"`  // what puts the volumes back
	Worker   string    `json:"worker,omitempty"`  // name of the worker that writes the volumes
	Volumes  []string  `json:"volumes,omitempty"` // that are written, and were there
	Found    []string  `json:"found,omitempty"`   // of these, those of which only the storage was there
	Made     []string  `json:"made,omitempty"`    // volumes that were not
	Holds    []string  `json:"holds,omitempty"`   // all that the old container mounts
	Others   []other   `json:"others,omitempty"`  // containers that are stopped for it
	// What the old container was connected to: a start that fails may lose it.
	Endpoints dockerop.Endpoints `json:"endpoints,omitempty"`

	late bool // it is taken back by somebody else, after whatever has happened meanwhile
}

// other is a container that shares a volume with the one that is restored.
type other struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Paused  bool   `json:"paused,omitempty"`
	Timeout int    `json:"timeout,omitempty"` // seconds that it has to stop
	// What it was connected to: a start that fails may lose it.
	Endpoints dockerop.Endpoints `json:"endpoints,omitempty"`
}

// newJournal says how everything is now. An empty safety means that there will
// be no safety snapshot.
func newJournal(r replacement, safety labels.ID) journal {
	j := journal{Name: r.name, Snapshot: r.snapshot.ID, Safety: safety, Others: r.others}
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
	j.Aside = asideName(j.OldName, j.Old)
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

// asideName is what the old container is called while another has its name.
func asideName(name, id string) string { return fmt.Sprintf("%s-replaced-%s", name, id[:6]) }

// workerName is the name of the worker that writes the volumes of the operation that
// takes the snapshot id.
func (j journal) workerName(id labels.ID) string {
	return volumebackup.LockName(j.lock()) + "-" + string(id[len(id)-workerDigits:])
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

// lock is the ID under which the operation excludes others.
func (j journal) lock() string {
	if j.Old != "" {
		return j.Old
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(j.Name)))
}

// isAbout tells whether the operation concerns a container of one of these
// names or IDs.
func (j journal) isAbout(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		isID := len(word) >= dockerop.ShortID && strings.HasPrefix(j.Old, word)
		return isID || word != "" && (word == j.Name || word == j.OldName || word == j.Aside)
	})
}

// isOn tells whether the operation writes one of these volumes.
func (j journal) isOn(volumes []string) bool {
	return slices.ContainsFunc(slices.Concat(j.Volumes, j.Made), func(name string) bool { return slices.Contains(volumes, name) })
}

// options describe the worker that holds the lock. It has the volumes mounted:
// so the engine keeps those of a container that it removes when it stops.
func (j journal) options() (volumebackup.RestoreOptions, error) {
	present := slices.DeleteFunc(dockerop.Distinct(j.Holds, j.Volumes), func(name string) bool { return slices.Contains(j.Found, name) })
	if err := j.check(); err != nil {
		return volumebackup.RestoreOptions{}, fmt.Errorf("write journal: %w", err)
	}
	text, err := json.Marshal(j)
	if err != nil {
		return volumebackup.RestoreOptions{}, fmt.Errorf("write journal: %w", err)
	}
	return volumebackup.RestoreOptions{
		Lock: j.lock(), Purpose: "restore " + string(j.Snapshot) + " in place", Volumes: present,
		Journal: map[string]string{labelJournal: string(text)},
	}, nil
}

// volumesOf are the names of captured volumes.
func volumesOf(mounts []labels.Mount) []string {
	var names []string
	for _, m := range mounts {
		if m.Type == string(mount.TypeVolume) && m.Name != "" {
			names = append(names, m.Name)
		}
	}
	return dockerop.Distinct(names)
}
