package history

import (
	"slices"
	"strings"
)

// marks are how lines look as text.
var marks = map[Line]byte{Empty: ' ', Solid: '|', Dashed: ':'}

// Text draws a row as git log --graph does: a line for each that joins others, and the node's own.
func (r Row) Text(isRestore bool) (joins []string, own string) {
	above := slices.Clone(r.Above)
	for i, lane := range slices.Backward(r.Joins) {
		into := r.Lane
		if i > 0 {
			into = r.Joins[i-1]
		}
		joins = append(joins, textOfJoin(above, lane, into))
		above[lane] = Empty
	}
	line := textOf(r.Below, max(len(r.Below), r.Lane+1))
	line[2*r.Lane] = '*'
	if isRestore {
		line[2*r.Lane] = 'o'
	}
	return joins, strings.TrimRight(string(line), " ")
}

// textOfJoin draws how one lane goes over into another, to the left of it.
func textOfJoin(above []Line, lane, into int) string {
	line := textOf(above, len(above))
	line[2*lane], line[2*lane-1] = ' ', '/'
	for at := 2*into + 1; at < 2*lane-1; at++ {
		if line[at] == ' ' {
			line[at] = '_'
		}
	}
	return strings.TrimRight(string(line), " ")
}

// textOf draws lines side by side, in so many lanes.
func textOf(lines []Line, lanes int) []byte {
	text := []byte(strings.Repeat(" ", 2*lanes))
	for lane, line := range lines {
		text[2*lane] = marks[line]
	}
	return text
}
