package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// notWithContent are the options that mean nothing for the content of one file.
var notWithContent = []string{"stat", "path", "volume", "format"}

func (o *diffOptions) checkContent(flags *pflag.FlagSet) error {
	if !flags.Changed("content") {
		return nil
	}
	for _, name := range notWithContent {
		if flags.Changed(name) {
			return fmt.Errorf("conflicting options: --content and --%s", name)
		}
	}
	if strings.Trim(o.content, "/") == "" {
		return errors.New("--content is the path of a file in the container, as in /etc/hosts")
	}
	o.content = "/" + strings.TrimLeft(o.content, "/")
	return nil
}

// sideNames are what the two sides are called in a unified diff.
func (o *diffOptions) sideNames(words []string) (before, after string) {
	name := func(side string) string {
		text := side + ":" + o.content
		if oneLine(text) != text {
			return quoted(text)
		}
		return text
	}
	before = name(words[0])
	if len(words) > 1 {
		return before, name(words[1])
	}
	return before, name("now")
}

// runDiffContent prints in what the content of one file differs.
func runDiffContent(ctx context.Context, d deps, o diffOptions, words []string) error {
	type sides struct{ before, after extract.File }
	found, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (sides, error) {
		return withSnapshot(ctx, d, eng, words[0], func(word string) (sides, error) {
			o.engine.Old = word
			if len(words) > 1 {
				o.engine.New = words[1]
			}
			before, after, err := eng.Contents(ctx, o.engine, o.content, p)
			return sides{before, after}, err
		})
	})
	if err != nil {
		return err
	}
	oldName, newName := o.sideNames(words)
	switch {
	case found.before.IsThere == found.after.IsThere && bytes.Equal(found.before.Content, found.after.Content):
		return writeLine(d.out, "no changes")
	case isBinary(found.before.Content) || isBinary(found.after.Content):
		return writeLine(d.out, fmt.Sprintf("Binary files %s and %s differ", oldName, newName))
	}
	return d.printUnified(unified(oldName, found.before, newName, found.after))
}

// noFile is how a unified diff calls what is not there.
const noFile = "/dev/null"

func unified(oldName string, before extract.File, newName string, after extract.File) string {
	if !before.IsThere {
		oldName = noFile
	}
	if !after.IsThere {
		newName = noFile
	}
	text := string(diff.Diff(oldName, before.Content, newName, after.Content))
	if text == "" { // an empty file came or went
		return fmt.Sprintf("--- %s\n+++ %s\n", oldName, newName)
	}
	_, text, _ = strings.Cut(text, "\n") // the command, which is not ours
	return text
}

// isBinary tells whether content is no text.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content)
}

// The colours of a unified diff on a terminal.
const (
	colourName    = "\x1b[1m"
	colourPlace   = "\x1b[36m"
	colourAdded   = "\x1b[32m"
	colourRemoved = "\x1b[31m"
	colourNone    = "\x1b[0m"
)

// printUnified writes a unified diff: on a terminal coloured, and elsewhere byte by byte, so that patch takes it.
func (d deps) printUnified(text string) error {
	noColour, _ := d.settings.environment("NO_COLOR")
	coloured := d.out.IsTerminal() && noColour == ""
	out := d.out.content()
	inHunk := false
	for line := range strings.Lines(text) {
		inHunk = inHunk || strings.HasPrefix(line, "@@")
		colour := ""
		if coloured {
			colour = colourOf(line, inHunk)
		}
		if colour != "" {
			d.out.writeControl(colour)
		}
		if _, err := io.WriteString(out, strings.TrimSuffix(line, "\n")); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
		if colour != "" {
			d.out.writeControl(colourNone)
		}
		if _, err := io.WriteString(out, "\n"); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	return nil
}

// colourOf is the colour of a line of a unified diff; "" for none.
func colourOf(line string, inHunk bool) string {
	switch {
	case !inHunk:
		return colourName
	case line[0] == '@':
		return colourPlace
	case line[0] == '+':
		return colourAdded
	case line[0] == '-':
		return colourRemoved
	}
	return ""
}
