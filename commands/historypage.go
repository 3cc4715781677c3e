package commands

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/history"
)

// historyTemplate escapes what labels say: anybody may have made them.
//
//go:embed history.html
var historySource string

var historyTemplate = template.Must(template.New("history").Parse(historySource))

// historyPage is what the template shows.
type historyPage struct {
	Title, Summary string
	Width          int // of the tree, in pixels
	Entries        []pageEntry
}

// pageEntry is a snapshot or a restore.
type pageEntry struct {
	ID, Anchor, Name, Why, At, Age, Size, Pause string
	Here                                        []string
	IsRestore                                   bool
	Percent                                     int // of the largest
	X, Color                                    int // of its mark
	Space                                       int // to the next one, in pixels
	Lines                                       []pageLine
	Joins                                       []pageJoin
	Details                                     []pageDetail
	Changes                                     *pageChanges // nil: there is nothing to compare with
}

// pageLine is a line in one lane, to the bottom of the entry unless it ends before.
type pageLine struct {
	X, Color, Top, Height int
	Ends, Gap             bool
}

// pageJoin is a line from one lane into another.
type pageJoin struct{ From, To, Color int }

type pageDetail struct{ Key, Value string }

// The measures of the page, in pixels.
const (
	markAt    = 15  // where the mark of an entry is, below its top
	laneWidth = 18  // between two lanes
	mostLanes = 150 // of all lanes, on a narrow screen, too
	entrySize = 40  // of one entry on the time axis
	mostSpace = 140 // between two entries: a longer pause is written there
	colors    = 6
)

func newHistoryPage(container string, compared comparedHistory, now time.Time) historyPage {
	h := compared.history
	rows := h.Draw()
	lanes, largest, total, taken := 1, int64(1), int64(0), int64(0)
	for i, row := range rows {
		lanes = max(lanes, len(row.Above), len(row.Below), row.Lane+1)
		if s := h[i].Snapshot; s != nil {
			largest, total, taken = max(largest, s.StoredBytes()), total+s.StoredBytes(), taken+1
		}
	}
	scale := newPageScale(lanes, h)
	page := historyPage{Title: "History of all snapshots", Width: scale.x(lanes)}
	if container != "" {
		page.Title = "History of " + oneLine(container)
	}
	page.Summary = fmt.Sprintf("%s, %s, which added %s. As of %s.", plural(taken, "snapshot", "snapshots"),
		plural(int64(len(h))-taken, "restore", "restores"), size(total), now.UTC().Format(time.DateTime+" MST"))
	for i, row := range rows {
		e := newPageEntry(h, i, now)
		e.X, e.Color = scale.x(row.Lane), row.Lane%colors
		e.Lines, e.Joins = scale.lines(row)
		e.Space, e.Pause = scale.space(h, i)
		if s := h[i].Snapshot; s != nil {
			e.Percent = int(100 * s.StoredBytes() / largest)
		}
		if changed, known := compared.changes[i]; known {
			e.Changes = &changed
		}
		page.Entries = append(page.Entries, e)
	}
	return page
}

func newPageEntry(h history.History, i int, now time.Time) pageEntry {
	n := h[i]
	e := pageEntry{
		Anchor: fmt.Sprint("e", i), At: rfc3339(n.At), Age: units.HumanDuration(now.Sub(n.At)) + " ago", IsRestore: n.Snapshot == nil,
		Here: convert(n.Here, func(c history.Standing) string { return oneLine(c.Container) + ", " + oneLine(c.State) }),
	}
	if n.Snapshot == nil {
		e.ID, e.Why = string(n.Restore.Snapshot), "restored as the copy "+oneLine(n.Restore.Container)
		if n.Restore.InPlace {
			e.Why = "restored in place"
		}
		e.Details = restoreFacts(n)
		return e
	}
	s := n.Snapshot
	e.ID, e.Name, e.Why, e.Size = string(s.ID), oneLine(s.Name), string(s.Trigger), size(s.StoredBytes())
	e.Details = append(snapshotFacts(n), changeFacts(h, i)...)
	return e
}

// restoreFacts are the details of a restore.
func restoreFacts(n history.Node) []pageDetail {
	r := n.Restore
	return facts([]pageDetail{
		{"restored", string(r.Snapshot)},
		{"at", rfc3339(r.At)},
		{"into", r.Container},
		{"container ID", r.ContainerID},
		{"undo with", string(r.Safety)},
		{"run", r.RunID},
	})
}

// snapshotFacts are the details of a snapshot.
func snapshotFacts(n history.Node) []pageDetail {
	s := n.Snapshot
	all := []pageDetail{
		{"description", s.Description},
		{"container", s.Container.Name},
		{"state", string(s.Container.State)},
		{"image", s.Container.Image},
		{"taken", rfc3339(s.Created)},
		{"trigger", string(s.Trigger)},
		{"run", s.RunID},
		{"step", s.StepID},
		{"group", s.Group},
		{"safety for", string(s.Restores)},
		{"tags", strings.Join(s.Tags, ", ")},
		{"meta", newPairs(s.Meta).String()},
		{"expires", rfc3339(s.Expires)},
		{"own files", size(s.Size) + ", in the container's own filesystem"},
	}
	if s.Pinned {
		all = append(all, pageDetail{"pinned", "yes"})
	}
	for _, m := range s.Mounts {
		all = append(all, pageDetail{"at " + m.Destination, mountFact(m)})
	}
	for _, a := range s.Attachments {
		all = append(all, pageDetail{"attached", a.Name + ", " + size(a.Bytes)})
	}
	return facts(all)
}

func mountFact(m labels.Mount) string {
	if m.Archive == nil {
		return cmp.Or(m.Name, m.Source, m.Type) + ": not in it (" + m.Skipped + ")"
	}
	return fmt.Sprintf("%s: %s, %s, of which it added %s", m.Word(), plural(m.Archive.Entries, "entry", "entries"), size(m.Archive.Bytes), size(m.Archive.Stored))
}

// changeFacts are what is otherwise than in the snapshot before.
func changeFacts(h history.History, i int) []pageDetail {
	changed, known := h.Changes(i)
	if !known {
		return nil
	}
	if len(changed) == 0 {
		return []pageDetail{{"changed", "no volume"}}
	}
	return facts(convert(changed, func(c history.Changed) pageDetail {
		return pageDetail{"changed", fmt.Sprintf("%s: entries %+d, bytes %s", c.Volume, c.Entries, signedSize(c.Bytes))}
	}))
}

func signedSize(bytes int64) string {
	if bytes < 0 {
		return "-" + size(-bytes)
	}
	return "+" + size(bytes)
}

// facts leaves out what is empty, and shows what is no text.
func facts(all []pageDetail) []pageDetail {
	var kept []pageDetail
	for _, f := range all {
		if f.Value != "" {
			kept = append(kept, pageDetail{oneLine(f.Key), safeText(f.Value)})
		}
	}
	return kept
}

// pageScale is where things are on the page.
type pageScale struct {
	lane   int // pixels between two lanes
	perPix time.Duration
}

// newPageScale makes the time axis as long as its entries would be without pauses.
func newPageScale(lanes int, h history.History) pageScale {
	s := pageScale{lane: max(6, min(laneWidth, mostLanes/lanes)), perPix: time.Second}
	if len(h) > 1 {
		s.perPix = max(1, h[0].At.Sub(h[len(h)-1].At)/time.Duration(entrySize*len(h)))
	}
	return s
}

func (p pageScale) x(lane int) int { return lane*p.lane + p.lane/2 + 2 }

// space is how far it is to the next older entry, and what is written there if the pause was longer than that.
func (p pageScale) space(h history.History, i int) (pixels int, pause string) {
	if i+1 == len(h) {
		return 0, ""
	}
	passed := h[i].At.Sub(h[i+1].At)
	far := passed / p.perPix
	if far <= mostSpace {
		return int(far), ""
	}
	return mostSpace, "⋮ " + units.HumanDuration(passed)
}

// lines are what passes an entry, or begins or ends at it.
func (p pageScale) lines(r history.Row) (lines []pageLine, joins []pageJoin) {
	line := func(lane int, kind history.Line) pageLine {
		return pageLine{X: p.x(lane), Color: lane % colors, Gap: kind == history.Dashed}
	}
	for lane, kind := range r.Below {
		l := line(lane, kind)
		if lane == r.Lane {
			l.Top = markAt
		}
		if kind != history.Empty {
			lines = append(lines, l)
		}
	}
	if !r.Newest {
		l := line(r.Lane, r.Above[r.Lane])
		l.Ends, l.Height = true, markAt
		lines = append(lines, l)
	}
	for _, lane := range r.Joins {
		joins = append(joins, pageJoin{From: p.x(lane), To: p.x(r.Lane), Color: lane % colors})
	}
	return lines, joins
}

// writeHistoryPage writes the page to a file, which has all of it or is as it was.
func writeHistoryPage(name, container string, h comparedHistory, now time.Time) error {
	var page bytes.Buffer
	if err := historyTemplate.Execute(&page, newHistoryPage(container, h, now)); err != nil {
		return fmt.Errorf("make page: %w", err)
	}
	err := writeWhole(name, func(file io.Writer) error {
		_, err := page.WriteTo(file)
		return err
	})
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}
