package commands

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// summary is what every command prints of a snapshot. Its keys mean the same
// everywhere and are always there: docs/json.md describes them. A field for templates
// is called as its key, in Go's spelling.
type summary struct {
	ID               string        `json:"id"`
	Kind             string        `json:"kind"`
	Line             string        `json:"line"`
	Name             string        `json:"name"`
	Ref              string        `json:"ref"`
	Container        string        `json:"container"`
	ContainerID      string        `json:"container_id"`
	ContainerState   string        `json:"container_state"`
	ContainerImage   string        `json:"container_image"`
	ContainerImageID string        `json:"container_image_id"`
	ImageID          string        `json:"image_id"`
	Created          string        `json:"created"`
	Updated          string        `json:"updated"`
	Description      string        `json:"description"`
	Tags             words         `json:"tags"`
	Meta             pairs         `json:"meta"`
	Trigger          string        `json:"trigger"`
	RunID            string        `json:"run_id"`
	StepID           string        `json:"step_id"`
	Number           *int          `json:"number"`
	Usage            *float64      `json:"usage"`
	Group            string        `json:"group"`
	Parent           string        `json:"parent"`
	SafetyFor        string        `json:"safety_for"`
	Expires          string        `json:"expires"`
	Pinned           bool          `json:"pinned"`
	Platform         string        `json:"platform"`
	Size             byteSize      `json:"size"`
	Volumes          words         `json:"volumes"`
	NotCaptured      []notCaptured `json:"not_captured"`
}

func newSummary(s catalog.Snapshot) summary {
	return summary{
		ID:               string(s.ID),
		Kind:             string(s.Kind),
		Line:             s.Line,
		Name:             s.Name,
		Ref:              s.Ref(),
		Container:        s.Container.Name,
		ContainerID:      s.Container.ID,
		ContainerState:   string(s.Container.State),
		ContainerImage:   s.Container.Image,
		ContainerImageID: s.Container.ImageID,
		ImageID:          s.ImageID,
		Created:          rfc3339(s.Created),
		Updated:          rfc3339(s.Updated),
		Description:      s.Description,
		Tags:             newWords(s.Tags),
		Meta:             newPairs(s.Meta),
		Trigger:          string(s.Trigger),
		RunID:            s.RunID,
		StepID:           s.StepID,
		Number:           s.Number,
		Usage:            s.Usage,
		Group:            s.Group,
		Parent:           string(s.Parent),
		SafetyFor:        string(s.Restores),
		Expires:          rfc3339(s.Expires),
		Pinned:           s.Pinned,
		Platform:         s.Platform,
		Size:             byteSize(s.StoredBytes()),
		Volumes:          listCaptured(s.Mounts),
		NotCaptured:      listNotCaptured(s),
	}
}

// notCaptured is a mount whose content is not in a snapshot, or a file of the root filesystem that is not.
type notCaptured struct {
	Destination string `json:"destination"`
	Type        string `json:"type"`
	Name        string `json:"name"`   // of a volume
	Source      string `json:"source"` // of a bind mount, on the engine's host
	Reason      string `json:"reason"`
}

// listNotCaptured lists the mounts and files that a snapshot does not hold, and why.
func listNotCaptured(s catalog.Snapshot) []notCaptured {
	list := []notCaptured{}
	if _, isTask := catalog.SwarmService(s.ContainerLabels()); isTask {
		list = append(list, notCaptured{Type: "secret", Reason: catalog.SwarmReason})
	}
	for _, file := range s.Whiteouts {
		list = append(list, notCaptured{Destination: file, Type: "file", Reason: dockerop.DescribeWhiteout(file)})
	}
	for _, m := range s.Mounts {
		if m.Skipped != "" {
			list = append(list, notCaptured{Destination: m.Destination, Type: m.Type, Name: m.Name, Source: m.Source, Reason: m.Skipped})
		}
	}
	return list
}

// listCaptured names the volumes, and where the bind mounts are, whose content is in a snapshot, each once.
func listCaptured(mounts []labels.Mount) words {
	list := words{}
	for _, m := range mounts {
		if name := m.Word(); m.Archive != nil && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// byteSize is a number of bytes: JSON shows the number, and templates show it as
// people read it.
type byteSize int64

func (b byteSize) String() string { return size(int64(b)) }

func size(bytes int64) string { return units.HumanSize(float64(bytes)) }

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// words are a list that templates print with commas, and JSON as a list.
type words []string

func (w words) String() string { return strings.Join(w, ",") }

// newWords makes a list that JSON shows as one, also if nothing is in it.
func newWords(list []string) words { return append(words{}, list...) }

// pairs are a map that templates print as key=value with commas.
type pairs map[string]string

func (p pairs) String() string {
	joined := make([]string, 0, len(p))
	for _, key := range slices.Sorted(maps.Keys(p)) {
		joined = append(joined, key+"="+p[key])
	}
	return strings.Join(joined, ",")
}

// newPairs makes pairs that JSON shows as an object, also if there are none.
func newPairs(m map[string]string) pairs {
	if m == nil {
		return pairs{}
	}
	return m
}
