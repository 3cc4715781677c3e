package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// lostColumns are those of the table that ls --lost prints.
const lostColumns = `{{.ID}}\t{{.Name}}\t{{.Container}}\t{{.CreatedSince}}\t{{.VolumeCount}}\t{{.Size}}\t{{.LostAgo}}\t{{.GoesIn}}`

// lostSnapshot is what ls --lost prints of a snapshot.
type lostSnapshot struct {
	listed
	LostSince string `json:"lost_since"`
	KeptUntil string `json:"kept_until"`
	Foreign   bool   `json:"foreign"` // its record is not known to be of this engine
}

// lostRow is one lost snapshot in a list, for templates.
type lostRow struct {
	row
	LostSince string
	KeptUntil string
	Foreign   bool
	lost      archives.Lost
}

// MarshalJSON leaves out what only tables show.
func (r *lostRow) MarshalJSON() ([]byte, error) {
	return json.Marshal(lostSnapshot{r.listed, r.LostSince, r.KeptUntil, r.Foreign})
}

// LostAgo is how long ago the image was first missed.
func (r *lostRow) LostAgo() string { return units.HumanDuration(r.now.Sub(r.lost.Since)) + " ago" }

// GoesIn is how long its volumes are still kept, at least.
func (r *lostRow) GoesIn() string {
	if left := r.lost.Until.Sub(r.now); left > 0 {
		return "in " + units.HumanDuration(left)
	}
	return "at any moment"
}

// listLost prints the snapshots that have lost their images.
func (o *listOptions) listLost(ctx context.Context, d deps, format formatter.Format) error {
	list, err := call(d, defaultVolumes(), progressOptions{}, func(eng engine, p plan.Progress) ([]archives.Lost, error) {
		return withService(ctx, d, eng, o.engine.Container, func(container string) ([]archives.Lost, error) {
			o.engine.Container = container
			return eng.Lost(ctx, o.engine, p)
		})
	})
	if err != nil {
		return err
	}
	if format == formatter.TableFormatKey {
		format += " " + lostColumns
	}
	return writeBuffered(d, func(text *bytes.Buffer) error {
		return writeLost(formatter.Context{Output: text, Format: format, Trunc: format.IsTable() && !o.noTrunc}, list, d.clock.now())
	})
}

// writeLost writes lost snapshots in the format of the context.
func writeLost(c formatter.Context, list []archives.Lost, now time.Time) error {
	header := &lostRow{}
	own := maps.Clone(headers)
	maps.Copy(own, formatter.SubHeaderContext{
		"LostSince": "LOST SINCE", "KeptUntil": "KEPT UNTIL", "LostAgo": "LOST", "GoesIn": "GOES", "Foreign": "FOREIGN",
	})
	header.Header = own
	return c.Write(header, func(format func(formatter.SubContext) error) error {
		for _, l := range list {
			r := &lostRow{row: row{listed: newListed(l.Snapshot), s: l.Snapshot, now: now}, lost: l}
			r.LostSince, r.KeptUntil, r.Foreign = rfc3339(l.Since), rfc3339(l.Until), l.Foreign
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
