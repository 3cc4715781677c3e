package pending

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Written are the volumes that existed and may have been written.
func (j Journal) Written() []string {
	if len(j.Volumes) == 0 {
		return j.Holds
	}
	return j.Volumes
}

// LabelJournal stands on the worker that holds the lock of a restore in place.
// It is written before anything is touched, and says what has to be known to
// take everything back; what was done already is observed, not written down.
const LabelJournal = labels.Prefix + "worker.replace"

// Journal is the value of [labelJournal].
type Journal struct {
	Name     string    `json:"name"`               // of the container, before and after
	Old      string    `json:"old,omitempty"`      // its ID; empty: it was gone
	OldName  string    `json:"old_name,omitempty"` // the old container's own name
	Aside    string    `json:"aside,omitempty"`    // what it is called meanwhile
	Running  bool      `json:"running,omitempty"`  // it was running
	Paused   bool      `json:"paused,omitempty"`   // and paused
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
	Others   []Other   `json:"others,omitempty"`  // containers that are stopped for it
	// What the old container was connected to: a start that fails may lose it.
	Endpoints dockerop.Endpoints `json:"endpoints,omitempty"`
}

// Other is a container that shares a volume with the one that is restored.
type Other struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Paused  bool   `json:"paused,omitempty"`
	Timeout int    `json:"timeout,omitempty"` // seconds that it has to stop
	// What it was connected to: a start that fails may lose it.
	Endpoints dockerop.Endpoints `json:"endpoints,omitempty"`
}

// AsideName is what the old container is called while another has its name.
func AsideName(name, id string) string { return fmt.Sprintf("%s-replaced-%s", name, id[:6]) }

// WorkerName is the name of the worker that writes the volumes of the operation that
// takes the snapshot id.
func (j Journal) WorkerName(id labels.ID) string {
	return volumebackup.LockName(j.Lock()) + "-" + string(id[len(id)-workerDigits:])
}

// Lock is the ID under which the operation excludes others.
func (j Journal) Lock() string {
	if j.Old != "" {
		return j.Old
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(j.Name)))
}

// IsAbout tells whether the operation concerns a container of one of these
// names or IDs.
func (j Journal) IsAbout(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		isID := len(word) >= dockerop.ShortID && strings.HasPrefix(j.Old, word)
		return isID || word != "" && (word == j.Name || word == j.OldName || word == j.Aside)
	})
}

// isOn tells whether the operation writes one of these volumes.
func (j Journal) isOn(volumes []string) bool {
	return slices.ContainsFunc(slices.Concat(j.Volumes, j.Made), func(name string) bool { return slices.Contains(volumes, name) })
}

// IsOneOf tells whether one of the words names the container.
func (o Other) IsOneOf(words []string) bool {
	return slices.Contains(words, o.ID) || slices.Contains(words, o.Name)
}

// State is what the old container was doing, for people.
func (j Journal) State() string {
	switch {
	case j.Paused:
		return "paused"
	case j.Running:
		return "running"
	}
	return "stopped"
}

// WhyGone is one of two texts: the old container has removed itself, or somebody
// else has.
func (j Journal) WhyGone(itself, somebody string) string {
	if j.OneShot {
		return itself
	}
	return somebody
}

// Stopped are the containers that are stopped, in that order.
func (j Journal) Stopped() []Other {
	all := slices.Clone(j.Others)
	slices.Reverse(all) // who depends on others is stopped first, and started last
	if j.Old != "" && j.Running {
		all = append(all, Other{ID: j.Old, Name: j.OldName, Paused: j.Paused, Timeout: j.Timeout})
	}
	return all
}

// Encode is the journal as the label [LabelJournal] holds it. It refuses one that
// [ReadJournal] would refuse.
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
