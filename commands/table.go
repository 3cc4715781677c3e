package commands

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docker/cli/cli/command/formatter"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// column is a column of the table that ls prints.
type column struct {
	field string
	drop  int                         // a narrow terminal drops the column with the highest first; 0: never
	has   func(catalog.Snapshot) bool // the column is there if this is true of one snapshot; nil: always
}

var columns = []column{
	{field: "ID"},
	{field: "Name", drop: 1},
	{field: "Container", drop: 3},
	{field: "Kind", drop: 11, has: isState},
	{field: "Line", drop: 10, has: isState},
	{field: "Trigger", drop: 8},
	{field: "CreatedSince", drop: 2},
	{field: "Size", drop: 6},
	{field: "VolumeCount", drop: 7},
	{field: "Pinned", drop: 4, has: func(s catalog.Snapshot) bool { return s.Pinned }},
	{field: "ExpiresIn", drop: 5, has: func(s catalog.Snapshot) bool { return !s.Expires.IsZero() }},
	{field: "Description", drop: 9, has: func(s catalog.Snapshot) bool { return s.Description != "" }},
}

func isState(s catalog.Snapshot) bool { return s.Kind == labels.KindState }

// columnsFor returns the columns of a table of these snapshots.
func columnsFor(list []catalog.Snapshot) []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return c.has != nil && !slices.ContainsFunc(list, c.has)
	})
}

// tableFormat is a table with these columns.
func tableFormat(shown []column) formatter.Format {
	fields := convert(shown, func(c column) string { return "{{." + c.field + "}}" })
	return formatter.Format(formatter.TableFormatKey + " " + strings.Join(fields, `\t`))
}

// writeTable writes the table that ls prints without --format. It drops columns until the
// table fits into width; 0: there is no limit.
func writeTable(out *bytes.Buffer, list []catalog.Snapshot, now time.Time, width int, shorten bool) error {
	for shown := columnsFor(list); ; {
		var text bytes.Buffer
		if err := writeList(formatter.Context{Output: &text, Format: tableFormat(shown), Trunc: shorten}, list, now); err != nil {
			return err
		}
		if width == 0 || len(shown) == 1 || widest(text.String()) <= width {
			_, err := text.WriteTo(out)
			return err
		}
		first := slices.MaxFunc(shown, func(a, b column) int { return cmp.Compare(a.drop, b.drop) })
		shown = slices.DeleteFunc(shown, func(c column) bool { return c.field == first.field })
	}
}

// widest is how many characters the longest line has.
func widest(text string) int {
	longest := 0
	for line := range strings.Lines(text) {
		longest = max(longest, utf8.RuneCountInString(strings.TrimRight(line, "\n")))
	}
	return longest
}
