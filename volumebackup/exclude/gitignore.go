package exclude

import "strings"

const (
	// MaxGitignore is how long a .gitignore file may be that counts.
	MaxGitignore = 1 << 20

	// maxHeld is how many bytes of .gitignore files are kept at a time.
	maxHeld = 8 << 20

	// maxLine is how long a line of one may be that counts: no path is longer.
	maxLine = 4096
)

// ignore is one line of a .gitignore file.
type ignore struct {
	negated bool
	dirOnly bool
	byName  bool   // compared with the name of an entry, else with its path below the file
	prefix  string // what the path begins with
	rest    glob   // what follows
}

// parseGitignore reads a .gitignore file.
func parseGitignore(text []byte) []ignore {
	var all []ignore
	for line := range strings.SplitSeq(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		line = trimSpaces(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' || len(line) > maxLine {
			continue
		}
		if g, ok := parseLine(line); ok {
			all = append(all, g)
		}
	}
	return all
}

func parseLine(line string) (ignore, bool) {
	var g ignore
	line, g.negated = strings.CutPrefix(line, "!")
	line, g.dirOnly = strings.CutSuffix(line, "/")
	g.byName = !strings.Contains(line, "/")
	if !g.byName {
		line = strings.TrimPrefix(line, "/")
	}
	// git compares what comes before the first wildcard by itself, so that two asterisks right after it count as if
	// they began the pattern.
	at := strings.IndexAny(line, `*?[\`)
	if at < 0 {
		at = len(line)
	}
	g.prefix = line[:at]
	var ok bool
	g.rest, ok = parseGlob(line[at:], !g.byName)
	return g, ok && line != ""
}

// trimSpaces takes spaces off the end, up to one that a backslash precedes.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			if i++; i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

// matches compares with an entry. below is its path below the .gitignore file, and base its name.
func (g *ignore) matches(below, base string, isDir bool) bool {
	if g.dirOnly && !isDir {
		return false
	}
	text := below
	if g.byName {
		text = base
	}
	text, ok := strings.CutPrefix(text, g.prefix)
	return ok && g.rest.matches(text)
}
