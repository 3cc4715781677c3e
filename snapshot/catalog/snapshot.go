package catalog

import (
	"encoding/json"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Snapshot is one snapshot as the engine holds it.
type Snapshot struct {
	labels.Record

	ImageID string   // of the image that is the filesystem
	Refs    []string // every tag of that image in the snapshot's repository, sorted
	Gone    bool     // the store that held what its volumes had is not there any more; only [Engine.List] looks
}

// Ref is the reference that always means this snapshot: repository and ID.
func (s Snapshot) Ref() string {
	return Repository(s.Container.Name) + ":" + string(s.ID)
}

// StoredBytes is what the snapshot takes on the engine: its writable layer and
// what it added to the store for its volumes.
func (s Snapshot) StoredBytes() int64 {
	total := s.Size
	for _, m := range s.Mounts {
		if m.Archive != nil {
			total += m.Archive.Stored
		}
	}
	return total
}

// ArchivedVolumes counts the volumes whose content is in the snapshot.
func (s Snapshot) ArchivedVolumes() int {
	archives := map[int]bool{}
	for _, m := range s.Mounts {
		if m.Archive != nil {
			archives[m.Archive.Index] = true
		}
	}
	return len(archives)
}

// Expired tells whether the snapshot's time is over at now.
func (s Snapshot) Expired(now time.Time) bool {
	return !s.Expires.IsZero() && !s.Expires.After(now)
}

// ContainerLabels are the labels that the captured container had, as it was
// configured. They are nil if the configuration cannot be read.
func (s Snapshot) ContainerLabels() map[string]string {
	var c struct{ Labels map[string]string }
	if err := json.Unmarshal(s.Config.Config, &c); err != nil {
		return nil
	}
	return c.Labels
}
