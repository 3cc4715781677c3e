package history

import "slices"

// Row is where a node is drawn, and what passes it: lines from newer nodes, above it, to older ones, below.
type Row struct {
	Lane   int    // of the node
	Joins  []int  // lanes from newer nodes that end here, besides its own
	Above  []Line // that come from newer nodes, before any has joined, by lane
	Below  []Line // that go on to older ones, by lane
	Newest bool   // nothing follows it
}

// Line is what is in a lane between two rows.
type Line int

// The lines.
const (
	Empty Line = iota
	Solid
	Dashed // snapshots in between were removed
)

// Draw gives each node a lane, so that no two lines are in one at the same time.
func (h History) Draw() []Row {
	rows := make([]Row, len(h))
	var goes []int // by lane: the node that its line leads to
	var lines []Line
	for i, n := range h {
		r := &rows[i]
		r.Above = slices.Clone(lines)
		r.Lane = slices.Index(goes, i)
		for lane := range goes {
			if goes[lane] == i && lane != r.Lane {
				r.Joins = append(r.Joins, lane)
				goes[lane], lines[lane] = Nothing, Empty
			}
		}
		if r.Newest = r.Lane < 0; r.Newest {
			if r.Lane = slices.Index(goes, Nothing); r.Lane < 0 {
				r.Lane, goes, lines = len(goes), append(goes, Nothing), append(lines, Empty)
			}
		}
		goes[r.Lane], lines[r.Lane] = n.Follows, Empty
		switch {
		case n.Follows != Nothing && n.Gap:
			lines[r.Lane] = Dashed
		case n.Follows != Nothing:
			lines[r.Lane] = Solid
		}
		for len(goes) > 0 && goes[len(goes)-1] == Nothing {
			goes, lines = goes[:len(goes)-1], lines[:len(lines)-1]
		}
		r.Below = slices.Clone(lines)
	}
	return rows
}
