package pending

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// LabelJournal is on the worker that holds the lock of a restore in place, and holds a [Journal].
const LabelJournal = labels.Prefix + "worker.replace"

// Journal is what has to be known to roll back a restore in place of one or several containers. It is
// written before anything is touched. What was done already is not in it: whoever rolls back looks.
type Journal struct {
	Members []Member `json:"members"`           // in the order in which their old containers are started
	Worker  string   `json:"worker,omitempty"`  // name of the worker that writes the volumes
	Volumes []string `json:"volumes,omitempty"` // keys of the volumes that are written and existed, and of bind mounts that are written
	Found   []string `json:"found,omitempty"`   // those of Volumes that did not exist, but whose storage did
	Made    []string `json:"made,omitempty"`    // volumes that did not exist
	Holds   []string `json:"holds,omitempty"`   // all volumes that the old containers mount
	Others  []Other  `json:"others,omitempty"`  // containers that are stopped meanwhile
	Keeps   bool     `json:"keeps,omitempty"`   // the old containers stay: only volumes are restored
	Live    bool     `json:"live,omitempty"`    // those that are kept are only frozen meanwhile
	Copy    *Copy    `json:"copy,omitempty"`    // takes the place of the only member, and its snapshot is the member's
}

// Member is one of the containers that are restored.
type Member struct {
	Name     string    `json:"name"`               // of the container, before and after the restore
	Old      string    `json:"old,omitempty"`      // ID of the old container; empty: it was gone
	OldName  string    `json:"old_name,omitempty"` // its name, which may differ from Name
	Aside    string    `json:"aside,omitempty"`    // its name while the new container has Name
	Running  bool      `json:"running,omitempty"`  // it was running
	Paused   bool      `json:"paused,omitempty"`   // it was paused as well
	OneShot  bool      `json:"one_shot,omitempty"` // it ran, and the engine removes it when it stops (--rm)
	Timeout  int       `json:"timeout,omitempty"`  // seconds that it has to stop
	Policy   string    `json:"policy,omitempty"`   // its restart policy, which is off meanwhile
	Retries  int       `json:"retries,omitempty"`  // of its restart policy
	Starts   bool      `json:"starts,omitempty"`   // the new container is started
	Snapshot labels.ID `json:"snapshot"`           // what is being restored
	Safety   labels.ID `json:"safety,omitempty"`   // the safety snapshot, from which the volumes are rolled back
	// Endpoints says how the old container was connected: a failed start may lose that.
	Endpoints dockerop.Endpoints `json:"endpoints,omitempty"`
}

// Other is a container that shares a volume with one that is restored, and is stopped meanwhile.
type Other struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Paused  bool   `json:"paused,omitempty"`
	Timeout int    `json:"timeout,omitempty"` // seconds that it has to stop
	// Endpoints says how it was connected: a failed start may lose that.
	Endpoints dockerop.Endpoints `json:"endpoints,omitempty"`
}

// Copy is a copy that takes the place of the container that is restored. It is frozen until that is settled. Then it goes,
// or runs on.
type Copy struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Of      labels.ID `json:"of"`                // the snapshot that it was made of
	Running bool      `json:"running,omitempty"` // it was running
	Paused  bool      `json:"paused,omitempty"`  // its user had paused it
	Volumes []string  `json:"volumes,omitempty"` // those that were made for it, and go with it
}

// isOneOf tells whether one of words is the name or the ID of the copy.
func (c *Copy) isOneOf(words []string) bool {
	return c != nil && slices.ContainsFunc(words, func(word string) bool {
		return word == c.Name || len(word) >= dockerop.ShortID && strings.HasPrefix(c.ID, word)
	})
}

// Is tells whether a container is the copy. There may be none.
func (c *Copy) Is(id string) bool { return c != nil && c.ID == id }

// AsideName returns the name of the old container while another has its own.
func AsideName(name, id string) string { return fmt.Sprintf("%s-replaced-%s", name, id[:6]) }

// WorkerName returns the name of the worker that writes the volumes. id is the first safety
// snapshot's.
func (j Journal) WorkerName(id labels.ID) string {
	return volumebackup.LockName(j.Lock()) + "-" + string(id[len(id)-workerDigits:])
}

// TrialName returns the name under which the new containers are created for a moment, before the old ones stop.
func (j Journal) TrialName() string {
	return "trial-" + j.Name() + "-" + j.Worker[len(j.Worker)-workerDigits:]
}

// Name returns the name of the first member. Whoever recovers the operation finds it by that.
func (j Journal) Name() string { return j.Members[0].Name }

// Locks returns the IDs whose locks the operation holds.
func (j Journal) Locks() []string {
	ids := make([]string, len(j.Members))
	for i, m := range j.Members {
		ids[i] = m.Lock()
	}
	if j.Copy != nil {
		ids = append(ids, j.Copy.ID)
	}
	return ids
}

// Lock returns the ID whose lock bears the journal.
func (j Journal) Lock() string { return slices.Max(j.Locks()) }

// Lock returns the ID that locks the member: the old container's or, if that was gone, a digest of its
// name.
func (m Member) Lock() string {
	if m.Old != "" {
		return m.Old
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(m.Name)))
}

// IsAbout tells whether the operation replaces a container with one of these names or IDs, or puts it in the place of
// another.
func (j Journal) IsAbout(words []string) bool {
	return j.Copy.isOneOf(words) || slices.ContainsFunc(j.Members, func(m Member) bool { return m.isOneOf(words) })
}

func (m Member) isOneOf(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		isID := len(word) >= dockerop.ShortID && strings.HasPrefix(m.Old, word)
		return isID || word != "" && (word == m.Name || word == m.OldName || word == m.Aside)
	})
}

// Replaces tells whether a container is the old one of a member.
func (j Journal) Replaces(id string) bool {
	return slices.ContainsFunc(j.Members, func(m Member) bool { return m.Old == id })
}

// Snapshots returns what is being restored.
func (j Journal) Snapshots() []string {
	ids := make([]string, len(j.Members))
	for i, m := range j.Members {
		ids[i] = string(m.Snapshot)
	}
	return ids
}

// isOn tells whether the operation writes one of these volumes.
func (j Journal) isOn(volumes []string) bool {
	return slices.ContainsFunc(slices.Concat(j.Volumes, j.Made), func(key string) bool { return isAmong(key, volumes) })
}

// isAmong tells whether a key is one of keys, or a directory that is in one of them, or holds one.
func isAmong(key string, keys []string) bool {
	return slices.ContainsFunc(keys, func(other string) bool { return key == other || storage.SamePath(key, other) })
}

// IsOneOf tells whether one of words is the name or ID of the container.
func (o Other) IsOneOf(words []string) bool {
	return slices.Contains(words, o.ID) || slices.Contains(words, o.Name)
}

// State says in words what the old container was doing.
func (m Member) State() string {
	switch {
	case m.Paused:
		return "paused"
	case m.Running:
		return "running"
	}
	return "stopped"
}

// WhyGone returns itself if the old container removed itself when it stopped, and somebody if
// somebody must have removed it.
func (m Member) WhyGone(itself, somebody string) string {
	if m.OneShot {
		return itself
	}
	return somebody
}

// Stopped returns the containers that are stopped, in the order in which they are.
func (j Journal) Stopped() []Other {
	all := slices.Clone(j.Others)
	slices.Reverse(all) // a container that depends on others is stopped before them and started after them
	if j.Live {
		return all
	}
	for _, m := range slices.Backward(j.Members) {
		if m.Old != "" && m.Running {
			all = append(all, Other{ID: m.Old, Name: m.OldName, Paused: m.Paused, Timeout: m.Timeout})
		}
	}
	return all
}

// Encode returns the value of [LabelJournal]. It refuses a journal that [ReadJournal] would refuse.
func (j Journal) Encode() (string, error) {
	if err := j.Check(); err != nil {
		return "", fmt.Errorf("write journal: %w", err)
	}
	text, err := json.Marshal(j)
	if err != nil {
		return "", fmt.Errorf("write journal: %w", err)
	}
	return string(text), nil
}

// Written returns the volumes that existed before and may have been written to.
func (j Journal) Written() []string {
	if len(j.Volumes) == 0 {
		return j.Holds
	}
	return j.Volumes
}
