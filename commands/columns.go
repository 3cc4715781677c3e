package commands

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

const idsFormat formatter.Format = "{{.ID}}"

// maxDescription is how many characters of a description a table shows.
const maxDescription = 45

// writeList writes snapshots in the format of the context.
func writeList(c formatter.Context, list []catalog.Snapshot, now time.Time) error {
	header := &row{}
	header.Header = headers
	return c.Write(header, func(format func(formatter.SubContext) error) error {
		for _, s := range list {
			r := &row{listed: newListed(s), s: s, now: now}
			if c.Format.IsTable() {
				r.fit(c.Trunc)
			}
			if err := format(r); err != nil {
				return err
			}
		}
		return nil
	})
}

var headers = formatter.SubHeaderContext{
	"ID":               "SNAPSHOT ID",
	"Kind":             "KIND",
	"Line":             "LINE",
	"Name":             formatter.NameHeader,
	"Ref":              "REFERENCE",
	"Container":        "CONTAINER",
	"ContainerID":      formatter.ContainerIDHeader,
	"ContainerState":   formatter.StateHeader,
	"ContainerImage":   formatter.ImageHeader,
	"ContainerImageID": "CONTAINER IMAGE ID",
	"ImageID":          "IMAGE ID",
	"Created":          formatter.CreatedAtHeader,
	"Number":           "NUMBER",
	"Usage":            "USAGE",
	"Updated":          "UPDATED AT",
	"CreatedSince":     formatter.CreatedSinceHeader,
	"Description":      formatter.DescriptionHeader,
	"Tags":             "TAGS",
	"Meta":             "META",
	"Trigger":          "TRIGGER",
	"RunID":            "RUN ID",
	"StepID":           "STEP ID",
	"Group":            "GROUP",
	"Parent":           "PARENT",
	"SafetyFor":        "SAFETY FOR",
	"Expires":          "EXPIRES",
	"ExpiresIn":        "EXPIRES",
	"Pinned":           "PINNED",
	"Platform":         "PLATFORM",
	"Size":             formatter.SizeHeader,
	"Volumes":          "VOLUMES",
	"VolumeCount":      "VOLUMES",
	"VolumesGone":      "VOLUMES GONE",
	"NotCaptured":      "NOT CAPTURED",
	"Labels":           formatter.LabelsHeader,
}

// listed is what ls prints of a snapshot.
type listed struct {
	summary
	Labels      pairs `json:"labels"`       // of the container
	VolumesGone bool  `json:"volumes_gone"` // with the store that held their content
}

func newListed(s catalog.Snapshot) listed {
	return listed{summary: newSummary(s), Labels: newPairs(s.ContainerLabels()), VolumesGone: s.Gone}
}

// row is one snapshot in a list, for templates.
type row struct {
	formatter.HeaderContext
	listed
	s   catalog.Snapshot
	now time.Time
}

// MarshalJSON leaves out what only tables show.
func (r *row) MarshalJSON() ([]byte, error) { return json.Marshal(r.listed) }

// CreatedSince is how long ago the snapshot was taken.
func (r *row) CreatedSince() string { return units.HumanDuration(r.now.Sub(r.s.Created)) + " ago" }

// ExpiresIn says when the snapshot expires, or how long ago it did.
func (r *row) ExpiresIn() string {
	switch left := r.s.Expires.Sub(r.now); {
	case r.s.Expires.IsZero():
		return ""
	case r.s.Expired(r.now):
		return units.HumanDuration(-left) + " ago"
	default:
		return "in " + units.HumanDuration(left)
	}
}

// VolumeCount is the number of volumes and included bind mounts whose content the snapshot holds: "2", or "1 of 2"
// if it does not hold all. It ends in ", gone" if the store is gone.
func (r *row) VolumeCount() string {
	all := map[string]bool{}
	for _, m := range r.s.Mounts {
		if m.Type == "volume" || m.Archive != nil {
			all[m.Key()] = true
		}
	}
	text := strconv.Itoa(len(all))
	if held := r.s.ArchivedVolumes(); held != len(all) {
		text = fmt.Sprintf("%d of %d", held, len(all))
	}
	if r.VolumesGone {
		text += ", gone"
	}
	return text
}

// Label is one label of the container.
func (r *row) Label(name string) string { return r.Labels[name] }

// fit makes every text fit the line of a table, and shortens long ones if it is asked to.
func (r *row) fit(shorten bool) {
	for _, text := range []*string{
		&r.Line, &r.Name, &r.Container, &r.ContainerImage, &r.Description, &r.RunID, &r.StepID, &r.Group, &r.Platform,
	} {
		*text = oneLine(*text)
	}
	r.Meta, r.Labels = fitPairs(r.Meta), fitPairs(r.Labels)
	r.Tags = convert(r.Tags, oneLine)
	r.Volumes = convert(r.Volumes, oneLine)
	if !shorten {
		return
	}
	r.Description = formatter.Ellipsis(r.Description, maxDescription)
	for _, id := range []*string{&r.ContainerID, &r.ImageID, &r.ContainerImageID} {
		*id = formatter.TruncateID(*id)
	}
}

func fitPairs(m pairs) pairs {
	fitted := pairs{}
	for key, value := range m {
		fitted[oneLine(key)] = oneLine(value)
	}
	return fitted
}
