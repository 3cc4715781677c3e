package exclude

import "strings"

// glob is a pattern with wildcards, as .gitignore files have.
type glob []token

type token struct {
	kind tokenKind
	char byte
	set  *[256]bool // of a class
}

type tokenKind uint8

const (
	literal   tokenKind = iota
	anyChar             // ?, and not a slash
	class               // [a-z], and not a slash
	star                // *, and no slash
	deep                // ** between slashes: anything
	deepSlash           // **/ after a slash, or at the beginning: any number of directories, or none
)

// parseGlob reads a pattern. Only in a path are two asterisks special. It returns false if nothing can match.
func parseGlob(text string, isPath bool) (glob, bool) {
	var g glob
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i == len(text) {
				return nil, false
			}
			g = append(g, token{kind: literal, char: text[i]})
		case '?':
			g = append(g, token{kind: anyChar})
		case '*':
			t, next := parseStars(text, i, isPath)
			g, i = append(g, t), next-1
		case '[':
			set, next := parseClass(text, i+1)
			if set == nil {
				return nil, false
			}
			g, i = append(g, token{kind: class, set: set}), next
		default:
			g = append(g, token{kind: literal, char: c})
		}
	}
	return g, true
}

// parseStars reads one asterisk or more, and returns where they end.
func parseStars(text string, from int, isPath bool) (token, int) {
	end := from
	for end < len(text) && text[end] == '*' {
		end++
	}
	begins := from == 0 || text[from-1] == '/'
	rest := text[end:]
	switch {
	case end-from == 1 || !isPath || !begins:
	case rest == "" || strings.HasPrefix(rest, `\/`):
		return token{kind: deep}, end
	case rest[0] == '/':
		return token{kind: deepSlash}, end + 1
	}
	return token{kind: star}, end
}

// matches compares with a whole text. It keeps the set of places in the text that the pattern can have come to.
func (g glob) matches(text string) bool {
	if len(g) == 0 {
		return text == ""
	}
	if g[0].kind == star && isLiteral(g[1:]) { // as *.log, which most are
		tail := len(text) - (len(g) - 1)
		return tail >= 0 && strings.IndexByte(text[:tail], '/') < 0 && g[1:].equals(text[tail:])
	}
	at, next := make([]bool, len(text)+1), make([]bool, len(text)+1)
	at[0] = true
	for _, t := range g {
		if !t.advance(text, at, next) {
			return false
		}
		at, next = next, at
	}
	return at[len(text)]
}

func isLiteral(g glob) bool {
	for _, t := range g {
		if t.kind != literal {
			return false
		}
	}
	return true
}

func (g glob) equals(text string) bool {
	for i, t := range g {
		if t.char != text[i] {
			return false
		}
	}
	return true
}

// advance finds the places in a text that are reached from others by matching one token. It returns false if there are
// none.
func (t token) advance(text string, from, to []bool) bool {
	clear(to)
	reached, running := false, false
	for i := range from {
		switch t.kind {
		case star, deep:
			// running: the wildcard began at or before here
			running = running && (t.kind == deep || text[i-1] != '/') || from[i]
			to[i] = running
		case deepSlash:
			to[i] = from[i] || running && text[i-1] == '/'
			running = running || from[i]
		default:
			to[i] = i > 0 && from[i-1] && t.matches(text[i-1])
		}
		reached = reached || to[i]
	}
	return reached
}

// matches compares with a single character.
func (t token) matches(c byte) bool {
	switch t.kind {
	case anyChar:
		return c != '/'
	case class:
		return c != '/' && t.set[c]
	default:
		return c == t.char
	}
}
