//go:build linux

package archive

import (
	"slices"
	"strings"
)

// pathList keeps paths that come in the order of a walk. A path beneath the one before it, or beneath one above that,
// is stored without what they have in common: in a deep tree all paths together are much longer than all names.
type pathList struct {
	nodes []pathNode
	above []int32 // the last path, and those of the list that it lies in
	last  string
}

type pathNode struct {
	in     int32  // the path of the list that it lies in; -1: none
	rest   string // what it adds
	length int32  // of the whole path
}

func (l *pathList) add(path string) {
	for len(l.above) > 0 && !isIn(path, l.last[:l.nodes[l.above[len(l.above)-1]].length]) {
		l.above = l.above[:len(l.above)-1]
	}
	node := pathNode{in: -1, rest: path, length: int32(len(path))}
	if n := len(l.above); n > 0 {
		node.in = l.above[n-1]
		node.rest = path[l.nodes[node.in].length+1:]
	}
	node.rest = strings.Clone(node.rest) // not the whole path
	l.above = append(l.above, int32(len(l.nodes)))
	l.nodes = append(l.nodes, node)
	l.last = path
}

// isIn says that a path lies beneath a directory. The empty path of the root does not count as one: a path in it has
// nothing in common with it.
func isIn(path, directory string) bool {
	return len(directory) > 0 && len(path) > len(directory) && path[len(directory)] == '/' && strings.HasPrefix(path, directory)
}

func (l *pathList) length() int { return len(l.nodes) }

func (l *pathList) path(n int) string {
	b := make([]byte, l.nodes[n].length)
	for at := int32(n); at >= 0; at = l.nodes[at].in {
		node := &l.nodes[at]
		begin := int(node.length) - len(node.rest)
		copy(b[begin:], node.rest)
		if begin > 0 {
			b[begin-1] = '/'
		}
	}
	return string(b)
}

// backward visits the paths from the last to the first.
func (l *pathList) backward(visit func(path string) error) error {
	for n := range slices.Backward(l.nodes) {
		if err := visit(l.path(n)); err != nil {
			return err
		}
	}
	return nil
}
