package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Snapshot is a snapshot as the engine holds it: its record, and its image.
type Snapshot struct {
	labels.Record

	ImageID string   // of the image that is the filesystem
	Refs    []string // every tag of that image in the snapshot's repository, sorted
	Layers  []string // digests of the image's layers, the lowest first; a list of snapshots does not have them
	// Base is, of a snapshot that has lost its image, what stands in for that: the image that its container ran from.
	Base string
	Gone bool // the store with its archives does not exist any more; only archives.MarkGone looks
	// LostName is the name in its labels, if the image has that tag no more.
	LostName string
}

// Images returns the IDs of the snapshot's image and of those that were it before it was annotated.
func (s Snapshot) Images() []string { return append([]string{s.ImageID}, s.Former...) }

// Ref returns the reference that always means this snapshot: repository and ID.
func (s Snapshot) Ref() string {
	return Repository(s.Container.Name) + ":" + string(s.ID)
}

// Source returns the reference of the image that a container is made from.
func (s Snapshot) Source() string { return cmp.Or(s.Base, s.Ref()) }

// Labelled returns the record as the labels have it: with the name, also if the image has lost that tag.
func (s Snapshot) Labelled() labels.Record {
	r := s.Record
	r.Name = cmp.Or(s.Name, s.LostName)
	return r
}

// IsSafety reports whether a restore in place took the snapshot, of the state that it replaced.
func (s Snapshot) IsSafety() bool { return s.Restores != "" }

// Project returns the Compose project that the container belonged to; empty: none.
func (s Snapshot) Project() string { return s.ContainerLabels()[labelProject] }

// StoredBytes returns how much room the snapshot takes on the engine, in bytes: its writable layer,
// and what it added to the store.
func (s Snapshot) StoredBytes() int64 {
	total := s.Size
	for _, m := range s.Mounts {
		if m.Archive != nil {
			total += m.Archive.Stored
		}
	}
	for _, a := range s.Attachments {
		total += a.Bytes
	}
	return total
}

// ArchivedVolumes returns how many volumes have their content in the snapshot.
func (s Snapshot) ArchivedVolumes() int {
	archives := map[int]bool{}
	for _, m := range s.Mounts {
		if m.Archive != nil {
			archives[m.Archive.Index] = true
		}
	}
	return len(archives)
}

// UsesStore tells whether a store holds anything of the snapshot.
func (s Snapshot) UsesStore() bool { return s.ArchivedVolumes() > 0 || len(s.Attachments) > 0 }

// Attachment returns the attachment of that name.
func (s Snapshot) Attachment(name string) (labels.Attachment, bool) {
	at := slices.IndexFunc(s.Attachments, func(a labels.Attachment) bool { return a.Name == name })
	if at < 0 {
		return labels.Attachment{}, false
	}
	return s.Attachments[at], true
}

// Expired tells whether the snapshot has expired at now.
func (s Snapshot) Expired(now time.Time) bool {
	return !s.Expires.IsZero() && !s.Expires.After(now)
}

// ContainerLabels returns the labels that the captured container was configured with. It returns
// nil if the configuration cannot be read.
func (s Snapshot) ContainerLabels() map[string]string {
	var c struct{ Labels map[string]string }
	if err := json.Unmarshal(s.Config.Config, &c); err != nil {
		return nil
	}
	return c.Labels
}

// Root returns what the state in the snapshot is known by; see [labels.Root]. It is empty if the
// layers are not known, or the configuration cannot be read.
func (s Snapshot) Root() string {
	layers := s.Layers
	switch {
	case s.Kind == labels.KindState:
		layers = nil // it has none of its own
	case len(layers) == 0:
		return ""
	}
	root, err := labels.Root(s.Record, layers)
	if err != nil {
		return ""
	}
	return root
}

// Word is a word that means this snapshot and no other, as [Catalog.Resolve] takes it.
func (s Snapshot) Word() string { return s.word(string(s.ID)) }

// word returns how people name the snapshot by one of its tags.
func (s Snapshot) word(tag string) string { return s.Container.Name + ":" + tag }

// hasTag tells whether the snapshot has a tag.
func (s Snapshot) hasTag(tag string) bool {
	return slices.ContainsFunc(s.Refs, func(ref string) bool { return strings.HasSuffix(ref, ":"+tag) })
}

// decode makes a snapshot of an image's labels. It fails with [labels.ErrAbsent] if the image has
// no ID tag of its own: then it only inherited the labels. A name counts only while the image has
// that tag.
func decode(imageID string, refs []string, imageLabels map[string]string) (Snapshot, error) {
	record, err := labels.Decode(imageLabels)
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Record: record, ImageID: imageID}
	repository := Repository(record.Container.Name)
	for _, ref := range refs {
		if strings.HasPrefix(ref, repository+":") {
			s.Refs = append(s.Refs, ref)
		}
	}
	slices.Sort(s.Refs)
	if !slices.Contains(s.Refs, s.Ref()) {
		return Snapshot{}, labels.ErrAbsent
	}
	if !s.hasTag(s.Name) {
		s.LostName, s.Name = s.Name, ""
	}
	return s, nil
}

func decodeImage(found image.InspectResponse) (Snapshot, error) {
	if found.Config == nil {
		return Snapshot{}, labels.ErrAbsent
	}
	s, err := decode(found.ID, found.RepoTags, found.Config.Labels)
	s.Layers = found.RootFS.Layers
	return s, err
}

// FindParent returns the ID of the previous snapshot in a container's line: the newest of this very
// container, else the one that the container was restored from. It may be empty.
func FindParent(latest *Snapshot, c container.InspectResponse) labels.ID {
	if latest != nil && latest.Container.ID == c.ID {
		return latest.ID
	}
	for _, key := range []string{labels.KeyRestoredFrom, labels.KeyID} {
		if id, err := labels.ParseID(c.Config.Labels[key]); err == nil {
			return id
		}
	}
	return ""
}
