package protocol

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Path is a name inside a volume: any bytes. In JSON it is a string if it is UTF-8 and does not begin with a quote,
// else a Go-quoted string.
type Path string

// MarshalText implements encoding.TextMarshaler.
func (p Path) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(p)) && (p == "" || p[0] != '"') {
		return []byte(p), nil
	}
	return []byte(strconv.Quote(string(p))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Path) UnmarshalText(text []byte) error {
	if len(text) == 0 || text[0] != '"' {
		*p = Path(text)
		return nil
	}
	s, err := strconv.Unquote(string(text))
	if err != nil {
		return fmt.Errorf("decode path %s: %w", text, err)
	}
	*p = Path(s)
	return nil
}
