package commands

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/cli/templates"
	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

const (
	idsFormat      formatter.Format = "{{.ID}}"
	defaultTable   formatter.Format = `table {{.ID}}\t{{.Name}}\t{{.Container}}\t{{.Trigger}}\t{{.CreatedSince}}\t{{.Size}}\t{{.Volumes}}`
	maxDescription                  = 45
)

func listFormat(chosen string) formatter.Format {
	if chosen == formatter.TableFormatKey {
		return defaultTable
	}
	return formatter.Format(chosen)
}

// checkListFormat finds templates that do not parse before the engine is asked.
func checkListFormat(format string) error {
	_, err := templates.Parse(strings.TrimPrefix(format, formatter.TableFormatKey))
	return err
}

// writeList writes snapshots in the format of the context.
func writeList(c formatter.Context, list []snapshot.Snapshot, now time.Time) error {
	header := &row{}
	header.Header = headers
	return c.Write(header, func(format func(formatter.SubContext) error) error {
		for _, s := range list {
			if err := format(&row{s: s, table: c.Format.IsTable(), truncate: c.Trunc, now: now}); err != nil {
				return err
			}
		}
		return nil
	})
}

var headers = formatter.SubHeaderContext{
	"ID":           "SNAPSHOT ID",
	"Name":         formatter.NameHeader,
	"Container":    "CONTAINER",
	"ContainerID":  formatter.ContainerIDHeader,
	"Trigger":      "TRIGGER",
	"CreatedAt":    formatter.CreatedAtHeader,
	"CreatedSince": formatter.CreatedSinceHeader,
	"Size":         formatter.SizeHeader,
	"SizeBytes":    "SIZE (BYTES)",
	"Volumes":      "VOLUMES",
	"Description":  formatter.DescriptionHeader,
	"Tags":         "TAGS",
	"Meta":         "META",
	"RunID":        "RUN ID",
	"StepID":       "STEP ID",
	"Group":        "GROUP",
	"Parent":       "PARENT",
	"Image":        formatter.ImageHeader,
	"ImageID":      "IMAGE ID",
	"Ref":          "REFERENCE",
	"Platform":     "PLATFORM",
	"Pinned":       "PINNED",
	"Expires":      "EXPIRES",
	"State":        formatter.StateHeader,
	"Labels":       formatter.LabelsHeader,
}

// row is one snapshot in a list. Each method is a field for templates, and of
// the JSON form; there, times are RFC 3339 and sizes also plain numbers.
type row struct {
	formatter.HeaderContext
	s        snapshot.Snapshot
	table    bool // others get everything as it is
	truncate bool
	now      time.Time
}

// MarshalJSON has all fields.
func (r *row) MarshalJSON() ([]byte, error) { return formatter.MarshalJSON(r) }

// ID is the snapshot's ID.
func (r *row) ID() string { return string(r.s.ID) }

// Name is the snapshot's name, if it has one.
func (r *row) Name() string { return r.cell(r.s.Name) }

// Ref is the image reference that always means this snapshot.
func (r *row) Ref() string { return r.s.Ref() }

// Container is the name of the container that it was taken of.
func (r *row) Container() string { return r.cell(r.s.Container.Name) }

// ContainerID is the ID of that container.
func (r *row) ContainerID() string { return r.short(r.s.Container.ID) }

// State is what the container was doing.
func (r *row) State() string { return string(r.s.Container.State) }

// Image is what the container ran from.
func (r *row) Image() string { return r.cell(r.s.Container.Image) }

// ImageID is the ID of the image that the snapshot is.
func (r *row) ImageID() string { return r.short(strings.TrimPrefix(r.s.ImageID, "sha256:")) }

// Trigger is why it was taken.
func (r *row) Trigger() string { return string(r.s.Trigger) }

// CreatedAt is when it was taken, in RFC 3339.
func (r *row) CreatedAt() string { return rfc3339(r.s.Created) }

// CreatedSince is how long ago that was.
func (r *row) CreatedSince() string { return units.HumanDuration(r.now.Sub(r.s.Created)) + " ago" }

// Size is what it takes on the engine, as people read it.
func (r *row) Size() string { return size(r.s.StoredBytes()) }

// SizeBytes is what it takes on the engine.
func (r *row) SizeBytes() int64 { return r.s.StoredBytes() }

// Volumes is how many volumes it holds, of how many if that is not all, and whether
// what they held is gone.
func (r *row) Volumes() string {
	all := map[string]bool{}
	for _, m := range r.s.Mounts {
		if m.Type == "volume" {
			all[cmp.Or(m.Name, m.Destination)] = true
		}
	}
	text := fmt.Sprint(len(all))
	if held := r.s.ArchivedVolumes(); held != len(all) {
		text = fmt.Sprintf("%d of %d", held, len(all))
	}
	if r.s.Gone {
		text += ", gone"
	}
	return text
}

// Description is what the user wrote about it.
func (r *row) Description() string {
	if r.truncate {
		return formatter.Ellipsis(r.cell(r.s.Description), maxDescription)
	}
	return r.cell(r.s.Description)
}

// Tags are the user's tags.
func (r *row) Tags() words {
	tags := words{}
	for _, tag := range r.s.Tags {
		tags = append(tags, r.cell(tag))
	}
	return tags
}

// Meta are the user's own pairs.
func (r *row) Meta() pairs { return r.cells(r.s.Meta) }

// Labels are those of the container.
func (r *row) Labels() pairs { return r.cells(r.s.ContainerLabels()) }

// Label is one label of the container.
func (r *row) Label(name string) string { return r.cell(r.s.ContainerLabels()[name]) }

// RunID is the run that it belongs to.
func (r *row) RunID() string { return r.cell(r.s.RunID) }

// StepID is the step of that run.
func (r *row) StepID() string { return r.cell(r.s.StepID) }

// Group is what it was taken together with.
func (r *row) Group() string { return r.cell(r.s.Group) }

// Parent is the ID of the snapshot before it.
func (r *row) Parent() string { return string(r.s.Parent) }

// Platform is what it runs on.
func (r *row) Platform() string { return r.cell(r.s.Platform) }

// Pinned is whether it is protected.
func (r *row) Pinned() bool { return r.s.Pinned }

// Expires is when its time is over, in RFC 3339; empty if never.
func (r *row) Expires() string { return rfc3339(r.s.Expires) }

// cells does for a map what cell does for a text.
func (r *row) cells(m map[string]string) pairs {
	shown := pairs{}
	for key, value := range m {
		shown[r.cell(key)] = r.cell(value)
	}
	return shown
}

// cell is a text as the line of a table can hold it.
func (r *row) cell(text string) string {
	if r.table {
		return oneLine(text)
	}
	return text
}

func (r *row) short(id string) string {
	if r.truncate {
		return formatter.TruncateID(id)
	}
	return id
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// words are a list that templates print with commas, and JSON as a list.
type words []string

func (w words) String() string { return strings.Join(w, ",") }

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
