package verify

import (
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// Options says what to verify, and how.
type Options struct {
	Words []string // which snapshots; none: all on the engine
	Quick bool     // look whether everything is there and has its size, and read no content
}

// Verdict is what is said of a snapshot.
type Verdict string

// The verdicts.
const (
	OK         Verdict = "ok"
	Damaged    Verdict = "damaged"    // something in it is not what it was
	Incomplete Verdict = "incomplete" // something that it needs is not there at all
)

// Finding is one thing that is wrong.
type Finding struct {
	Where   string // volume, or labels, or image; as people call it
	Text    string
	Missing bool // it is not there, rather than wrong
}

// Result is what was found about one snapshot.
type Result struct {
	Word     string           // that named it; its reference, if all were asked for
	Snapshot catalog.Snapshot // empty if its labels cannot be read, or Err is set
	Findings []Finding
	Err      error // it is not known: the word names no snapshot, or the engine could not be asked
}

// Report is what was found about all of them.
type Report struct {
	Results []Result
	Bytes   int64 // of content that was read, and found to be good
	More    int64 // damages beyond those that are listed
}

// Verdict sums up what was found.
func (r Result) Verdict() Verdict {
	switch {
	case len(r.Findings) == 0:
		return OK
	case slices.ContainsFunc(r.Findings, func(f Finding) bool { return !f.Missing }):
		return Damaged
	}
	return Incomplete
}

func (r *Result) add(where, text string) {
	r.Findings = append(r.Findings, Finding{Where: where, Text: text})
}

func (r *Result) addMissing(where, text string) {
	r.Findings = append(r.Findings, Finding{Where: where, Text: text, Missing: true})
}
