package session

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// NumberMark stands between a run and the number of a snapshot, in words that name one.
const NumberMark = "#"

// ParseWord reads RUN#0, the first snapshot of a run, or RUN#-1, its last. It returns false for other
// words.
func ParseWord(word string) (runID string, number int, ok bool) {
	at := strings.LastIndex(word, NumberMark)
	if at < 0 || CheckRunID(word[:at]) != nil {
		return "", 0, false
	}
	const bits = 31
	n, err := strconv.ParseInt(word[at+len(NumberMark):], 10, bits+1)
	return word[:at], int(n), err == nil
}

// Claim returns a number for a snapshot that is about to be taken, and that no other will get.
func (s *Session) Claim() int {
	s.Next++
	return s.Next - 1
}

// GiveBack returns a number whose snapshot was not taken. It leaves a gap if a later number has been
// claimed since.
func (s *Session) GiveBack(number int) {
	if s.Next == number+1 {
		s.Next = number
	}
}

// Add records a snapshot that was taken.
func (s *Session) Add(one Snapshot) {
	s.Snapshots = append(s.Snapshots, one)
	slices.SortFunc(s.Snapshots, func(a, b Snapshot) int { return cmp.Compare(a.Number, b.Number) })
	s.Next = max(s.Next, one.Number+1)
}
