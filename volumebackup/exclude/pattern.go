package exclude

import "strings"

// pattern is one of labels.Exclusions.Patterns.
type pattern struct {
	names    string // one, or several with slashes between them
	fromRoot bool
	dirOnly  bool
}

func parsePattern(text string) pattern {
	var p pattern
	text, p.fromRoot = strings.CutPrefix(text, "/")
	p.names, p.dirOnly = strings.CutSuffix(text, "/")
	return p
}

func anyMatches(all []pattern, name string, isDir bool) bool {
	for _, p := range all {
		if p.matches(name, isDir) {
			return true
		}
	}
	return false
}

// matches compares with the end of a path: what is in a directory that matches is decided there.
func (p pattern) matches(name string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	return name == p.names || !p.fromRoot && strings.HasSuffix(name, "/"+p.names)
}

// mayMatchIn tells whether something in a directory can match. A single name can be anywhere, several only on the way.
func (p pattern) mayMatchIn(dir string) bool {
	if p.fromRoot {
		return strings.HasPrefix(p.names, dir+"/")
	}
	if !strings.Contains(p.names, "/") {
		return true
	}
	for i := range len(p.names) {
		if p.names[i] == '/' && (dir == p.names[:i] || strings.HasSuffix(dir, "/"+p.names[:i])) {
			return true
		}
	}
	return false
}
