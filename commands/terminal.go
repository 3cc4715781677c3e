package commands

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/docker/cli/cli/streams"
)

// terminal is a stream of this program. Everything that it writes goes through
// here, and much of it was made up by others: names, descriptions, paths, link
// targets, errors. A terminal acts on some of that, so that it could hide a
// warning or fake a line. What it would act on is shown instead.
type terminal struct{ *streams.Out }

// Write writes text. JSON stays the same JSON: the escapes are JSON's own, and what they
// replace can only be in its strings.
func (t terminal) Write(text []byte) (int, error) {
	if _, err := t.Out.Write([]byte(safeText(string(text)))); err != nil {
		if errors.Is(err, syscall.EPIPE) {
			err = fmt.Errorf("%w: %w", ErrOutputGone, err)
		}
		return 0, err
	}
	return len(text), nil
}

// content writes bytes as they are, which are no text of this program. Only on a terminal they
// are shown as text is.
func (t terminal) content() io.Writer {
	if t.IsTerminal() {
		return t
	}
	return rawOutput(t)
}

// rawOutput writes every byte as it is.
type rawOutput struct{ *streams.Out }

func (o rawOutput) Write(b []byte) (int, error) {
	n, err := o.Out.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("%w: %w", ErrOutputGone, err)
	}
	return n, err
}

// width is how many columns the terminal has; 0: it is none, or does not tell.
func (t terminal) width() int {
	_, width := t.GetTtySize()
	return int(width)
}

// writeControl writes a sequence that the terminal should act on.
func (t terminal) writeControl(sequence string) { _, _ = t.Out.Write([]byte(sequence)) }

// safeText shows everything that a terminal would act on as \u001b, and what is
// not UTF-8 as \xff. Lines and tabs stay.
func safeText(text string) string {
	return escape(text, func(r rune) bool { return r != '\n' && r != '\t' && acts(r) })
}

// oneLine does the same, and also escapes line ends and tabs.
func oneLine(text string) string { return escape(text, acts) }

// indented indents all lines but the first, so that none looks like one of ours.
func indented(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") }

func escape(text string, unsafe func(rune) bool) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unsafe) {
		return text
	}
	var b strings.Builder
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case unsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	return b.String()
}

// acts tells whether terminals do more with a character than show it: control characters
// (C0, DEL and C1), other line ends, and what changes the direction of the text around it.
func acts(r rune) bool {
	switch {
	case unicode.IsControl(r),
		r == '\u061c', r == '\u200e', r == '\u200f',
		'\u2028' <= r && r <= '\u202e',
		'\u2066' <= r && r <= '\u206f':
		return true
	}
	return false
}
