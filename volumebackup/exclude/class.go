package exclude

import "strings"

// classes are the named classes of characters, of ASCII as git has them.
var classes = map[string]func(c byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  func(c byte) bool { return c > ' ' && c < 0x7f },
	"lower":  func(c byte) bool { return c >= 'a' && c <= 'z' },
	"print":  func(c byte) bool { return c >= ' ' && c < 0x7f },
	"punct":  func(c byte) bool { return c > ' ' && c < 0x7f && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return strings.IndexByte(" \t\n\r", c) >= 0 },
	"upper":  func(c byte) bool { return c >= 'A' && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' },
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// classReader reads a class of characters, after its opening bracket.
type classReader struct {
	text string
	at   int
	set  [256]bool
	last byte // a range may begin with it; 0: none can
}

// parseClass returns the characters of a class, and where its closing bracket is; nil if nothing can match.
func parseClass(text string, from int) (set *[256]bool, end int) {
	r := classReader{text: text, at: from}
	negated := from < len(text) && (text[from] == '!' || text[from] == '^')
	if negated {
		r.at++
	}
	for first := true; ; first = false {
		if r.at >= len(text) {
			return nil, 0
		}
		if text[r.at] == ']' && !first {
			break
		}
		if !r.item() {
			return nil, 0
		}
	}
	for c := range r.set {
		r.set[c] = r.set[c] != negated
	}
	return &r.set, r.at
}

// item reads a character, a range or a named class. It returns false if the class is broken.
func (r *classReader) item() bool {
	c := r.text[r.at]
	switch {
	case c == '-' && r.last != 0 && r.at+1 < len(r.text) && r.text[r.at+1] != ']':
		r.at++
		to, ok := r.char()
		for c := int(r.last); ok && c <= int(to); c++ {
			r.set[c] = true
		}
		r.last = 0
		return ok
	case strings.HasPrefix(r.text[r.at:], "[:"):
		if ok, isNamed := r.named(); isNamed {
			return ok
		}
		r.at++ // a bracket like any other
	default:
		var ok bool
		if c, ok = r.char(); !ok {
			return false
		}
	}
	r.set[c], r.last = true, c
	return true
}

// char reads a character, which a backslash may precede.
func (r *classReader) char() (byte, bool) {
	if r.text[r.at] == '\\' {
		if r.at++; r.at >= len(r.text) {
			return 0, false
		}
	}
	c := r.text[r.at]
	r.at++
	return c, true
}

// named reads a class such as [:alpha:]. isNamed is false if it is none.
func (r *classReader) named() (ok, isNamed bool) {
	body := r.text[r.at+2:]
	end := strings.IndexByte(body, ']')
	if end < 0 {
		return false, true
	}
	name, isNamed := strings.CutSuffix(body[:end], ":")
	if !isNamed {
		return false, false
	}
	has, ok := classes[name]
	for c := 0; ok && c < len(r.set); c++ {
		r.set[c] = r.set[c] || has(byte(c))
	}
	r.at, r.last = r.at+2+end+1, 0
	return ok, true
}
