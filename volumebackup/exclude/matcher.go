package exclude

import (
	"path"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Verdict says what becomes of an entry.
type Verdict int

// The verdicts.
const (
	Take     Verdict = iota // it is archived
	LeaveOut                // it is not, nor is anything in it
	Search                  // it is a directory that is left out, but something in it may be included
)

// Matcher decides about the entries of one walk over a volume.
type Matcher struct {
	excluded  []pattern
	included  []pattern
	globs     []string
	gitignore bool
	kept      func(path string) (bool, error)
	levels    []level // the directories above the entry that was asked about last, from the root
	held      int     // bytes of .gitignore files in levels
}

// level is a directory that the walk is in.
type level struct {
	path     string
	included bool // so is all that is in it
	out      bool // left out: only what is included or kept in it is taken
	inGit    bool // it is a .git, or in one
	ignores  []ignore
	size     int // bytes of its .gitignore
}

// New makes a matcher for a walk that begins at the root of a volume. kept, unless it is nil, says of an entry
// that was found to be left out that it is taken all the same; it is asked in the order of the walk.
func New(e labels.Exclusions, kept func(path string) (bool, error)) *Matcher {
	m := &Matcher{globs: e.Globs, gitignore: e.Gitignore, kept: kept}
	for _, text := range e.Patterns {
		m.excluded = append(m.excluded, parsePattern(text))
	}
	for _, text := range e.Included {
		m.included = append(m.included, parsePattern(text))
	}
	return m
}

// Visit decides about an entry. The root has the path "", and is always taken.
func (m *Matcher) Visit(name string, isDir bool) (Verdict, error) {
	m.leave(name)
	if name == "" {
		m.levels = append(m.levels[:0], level{})
		return Take, nil
	}
	above := m.levels[len(m.levels)-1]
	now := level{
		path: name, included: above.included || anyMatches(m.included, name, isDir),
		inGit: above.inGit || isDir && path.Base(name) == ".git",
	}
	now.out = !now.included && (above.out || m.isExcluded(name, isDir, now.inGit))
	verdict, err := m.judge(now, isDir)
	if isDir {
		m.levels = append(m.levels, now)
	}
	return verdict, err
}

func (m *Matcher) judge(l level, isDir bool) (Verdict, error) {
	if !l.out {
		return Take, nil
	}
	if m.kept != nil {
		if isKept, err := m.kept(l.path); err != nil || isKept {
			return Take, err
		}
	}
	if isDir && m.mayHoldIncluded(l.path) {
		return Search, nil
	}
	return LeaveOut, nil
}

// WantsGitignore tells whether the .gitignore of the directory that was visited last can make a difference.
func (m *Matcher) WantsGitignore() bool {
	l := m.levels[len(m.levels)-1]
	return m.gitignore && !l.included && !l.out && !l.inGit
}

// Gitignore hands over the .gitignore of the directory that was visited last. It returns false if that is too
// long, and so does not count.
func (m *Matcher) Gitignore(text []byte) bool {
	if len(text) > MaxGitignore || m.held+len(text) > maxHeld {
		return false
	}
	l := &m.levels[len(m.levels)-1]
	l.ignores, l.size = parseGitignore(text), len(text)
	m.held += l.size
	return true
}

// leave forgets the directories that an entry is not in.
func (m *Matcher) leave(name string) {
	for n := len(m.levels) - 1; n > 0 && !strings.HasPrefix(name, m.levels[n].path+"/"); n-- {
		m.held -= m.levels[n].size
		m.levels = m.levels[:n]
	}
}

func (m *Matcher) isExcluded(name string, isDir, inGit bool) bool {
	if anyMatches(m.excluded, name, isDir) {
		return true
	}
	base := path.Base(name)
	for _, glob := range m.globs {
		if ok, _ := path.Match(glob, base); ok {
			return true
		}
	}
	return m.gitignore && !inGit && m.isIgnored(name, base, isDir)
}

// isIgnored asks the .gitignore files above an entry, the nearest first; of one file, the last line that matches counts.
func (m *Matcher) isIgnored(name, base string, isDir bool) bool {
	for n := len(m.levels) - 1; n >= 0; n-- {
		l := &m.levels[n]
		below := name
		if l.path != "" {
			below = name[len(l.path)+1:]
		}
		for i := len(l.ignores) - 1; i >= 0; i-- {
			if g := &l.ignores[i]; g.matches(below, base, isDir) {
				return !g.negated
			}
		}
	}
	return false
}

// mayHoldIncluded tells whether something in a directory may be included.
func (m *Matcher) mayHoldIncluded(dir string) bool {
	for _, p := range m.included {
		if p.mayMatchIn(dir) {
			return true
		}
	}
	return false
}
