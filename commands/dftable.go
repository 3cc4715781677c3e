package commands

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
)

// tables are several tables below each other, each with columns of its own.
type tables struct{ text bytes.Buffer }

// add adds a table with a heading, unless it has no rows.
func (t *tables) add(heading []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	if t.text.Len() > 0 {
		t.text.WriteByte('\n')
	}
	table := tabwriter.NewWriter(&t.text, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		_, _ = fmt.Fprintln(table, strings.Join(convert(row, oneLine), "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// printTables shows what was found to people.
func (o dfOptions) printTables(d deps, found removal.Outlook) error {
	var t tables
	kind := func(name string, snapshots int, s space.Share, logical string) []string {
		return []string{name, strconv.Itoa(snapshots), size(s.Bytes()), size(s.Unique), size(s.Shared), logical}
	}
	rows := [][]string{
		kind("Images", found.All.Snapshots, found.All.Images, "-"),
		kind("Archives", found.All.Archived, found.All.Archives, size(found.All.Logical)),
	}
	if found.Removed > 0 {
		rows = append(rows, []string{"Removed", strconv.Itoa(found.Removed), size(found.RemovedBytes), "-", "-", "-"})
	}
	if err := t.add([]string{"TYPE", "SNAPSHOTS", "SIZE", "UNIQUE", "SHARED", "IN VOLUMES"}, rows); err != nil {
		return err
	}
	if err := o.addParts(&t, found); err != nil {
		return err
	}
	rows = nil
	for _, store := range found.Stores {
		rows = append(rows, []string{store.Store, size(store.Total), size(store.Holes)})
	}
	if err := t.add([]string{"STORE", "SIZE", "HOLES"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, u := range o.shownLimits(found.Uses) {
		rows = append(rows, []string{u.Limit, u.Line, amount(u.Limit, u.Used), amount(u.Limit, u.Most)})
	}
	if err := t.add([]string{"LIMIT", "CONTAINER", "USED", "OF"}, rows); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(&t.text, "\nPruning would remove %s and free %s.\n", plural(int64(found.Prunable), "snapshot", "snapshots"), size(found.Frees))
	if _, err := t.text.WriteTo(d.out); err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	return nil
}

// addParts adds the tables of groups and of snapshots that were asked for.
func (o dfOptions) addParts(t *tables, found removal.Outlook) error {
	part := func(names []string, p space.Occupied) []string {
		return append(names, size(p.Images.Bytes()), size(p.Archives.Bytes()), size(p.Bytes().Unique), size(p.Bytes().Shared))
	}
	var rows [][]string
	if o.engine.By != "" {
		for _, g := range found.Groups {
			rows = append(rows, part([]string{cmp.Or(g.Group, "-"), strconv.Itoa(g.Snapshots)}, g))
		}
	}
	heading := []string{strings.ToUpper(string(o.engine.By)), "SNAPSHOTS", "IMAGES", "ARCHIVES", "UNIQUE", "SHARED"}
	if err := t.add(heading, rows); err != nil || !o.verbose {
		return err
	}
	rows = nil
	for i, s := range found.Snapshots {
		rows = append(rows, part([]string{string(s.ID), s.Container.Name, s.Name}, found.Each[i]))
	}
	return t.add([]string{"SNAPSHOT ID", "CONTAINER", "NAME", "IMAGES", "ARCHIVES", "UNIQUE", "SHARED"}, rows)
}

// shownLimits are all limits or, unless all were asked for, of those that are one for each container the
// one that is used most.
func (o dfOptions) shownLimits(uses []retention.Use) []retention.Use {
	if o.verbose {
		return uses
	}
	var shown []retention.Use
	places := map[string]int{} // in shown, by the limit
	for _, u := range uses {
		place, again := places[u.Limit]
		switch {
		case !again:
			places[u.Limit] = len(shown)
			shown = append(shown, u)
		case float64(u.Used)/float64(u.Most) > float64(shown[place].Used)/float64(shown[place].Most):
			shown[place] = u
		}
	}
	return shown
}

// amount shows how much of a limit there is.
func amount(limit string, n int64) string {
	switch limit {
	case retention.NameMaxSize:
		return size(n)
	case retention.NameRetentionDays:
		return strconv.FormatFloat(float64(n)/(24*time.Hour).Seconds(), 'f', 1, 64) + " days"
	}
	return strconv.FormatInt(n, 10)
}
