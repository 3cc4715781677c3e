package commands

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/snapshot/history"
)

// historyText draws a history, with a line for each snapshot and restore beside it.
func historyText(h history.History, now time.Time) string {
	header := strings.Split(historyHeader, "\t")
	several := showsSeveral(h)
	if several {
		header = slices.Insert(header, containerColumn, "CONTAINER")
	}
	lines := [][]string{header}
	for i, row := range h.Draw() {
		joins, own := row.Text(h[i].Snapshot == nil)
		for _, join := range joins {
			lines = append(lines, []string{join})
		}
		cells := append([]string{own}, historyCells(h, i, now)...)
		if several {
			cells = slices.Insert(cells, containerColumn, oneLine(containerOf(h[i])))
		}
		lines = append(lines, cells)
	}
	return aligned(lines)
}

// containerColumn is where the name of the container stands, if the history is of several.
const containerColumn = 2

// containerOf is the container that was captured or restored.
func containerOf(n history.Node) string {
	if n.Snapshot == nil {
		return n.Restore.Container
	}
	return n.Snapshot.Container.Name
}

// showsSeveral tells whether the snapshots are of several containers.
func showsSeveral(h history.History) bool {
	first := ""
	for _, n := range h {
		if n.Snapshot == nil {
			continue
		}
		if first != "" && n.Snapshot.Container.Name != first {
			return true
		}
		first = n.Snapshot.Container.Name
	}
	return false
}

// historyCells is what stands beside a node.
func historyCells(h history.History, i int, now time.Time) []string {
	n := h[i]
	age := units.HumanDuration(now.Sub(n.At)) + " ago"
	note := noteOf(n)
	if n.Snapshot == nil {
		how := "copy " + oneLine(n.Restore.Container)
		if n.Restore.InPlace {
			how = "in place"
		}
		return []string{"restored", "", age, how, "", "", note}
	}
	s := n.Snapshot
	changed, known := h.Changes(i)
	words := convert(changed, func(c history.Changed) string { return strings.TrimSpace(oneLine(c.Volume) + " " + signed(c.Entries)) })
	if known && len(words) == 0 {
		words = []string{"-"}
	}
	return []string{string(s.ID), oneLine(s.Name), age, string(s.Trigger), size(s.StoredBytes()), strings.Join(words, ", "), note}
}

// signed is how many more or less; nothing, if it is as many.
func signed(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%+d", n)
}

// noteOf says with what a restore is undone, and which containers stand here.
func noteOf(n history.Node) string {
	var notes []string
	if n.Snapshot == nil {
		notes = append(notes, "of "+string(n.Restore.Snapshot))
		if n.Restore.Safety != "" {
			notes = append(notes, "undo with "+string(n.Restore.Safety))
		}
	}
	for _, c := range n.Here {
		notes = append(notes, "<- "+oneLine(c.Container)+" ("+oneLine(c.State)+")")
	}
	return strings.Join(notes, ", ")
}

// aligned makes columns of equal width of lines of cells. Lines with one cell are longer than that if they like.
func aligned(lines [][]string) string {
	const gap = 3
	var widths []int
	for _, cells := range lines {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, cells := range lines {
		var line strings.Builder
		for i, cell := range cells {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return text.String()
}
