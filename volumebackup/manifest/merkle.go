package manifest

import "crypto/sha256"

// merkle computes the root of a tree of leaves that come one at a time. It
// holds one subtree for each bit that is set in the number of leaves.
type merkle struct {
	subtrees []Sum
	leaves   uint64
	scratch  []byte
}

// add appends a leaf.
func (m *merkle) add(content []byte) {
	m.scratch = append(append(m.scratch[:0], 0), content...)
	sum := Sum(sha256.Sum256(m.scratch))
	for n := m.leaves; n&1 == 1; n >>= 1 {
		last := len(m.subtrees) - 1
		sum = node(m.subtrees[last], sum)
		m.subtrees = m.subtrees[:last]
	}
	m.subtrees = append(m.subtrees, sum)
	m.leaves++
}

// root is the root over all leaves so far.
func (m *merkle) root() Sum {
	if m.leaves == 0 {
		return sha256.Sum256(nil)
	}
	sum := m.subtrees[len(m.subtrees)-1]
	for i := len(m.subtrees) - 2; i >= 0; i-- {
		sum = node(m.subtrees[i], sum)
	}
	return sum
}

func node(left, right Sum) Sum {
	var b [1 + 2*sha256.Size]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}
