package snapshot

import (
	"slices"
	"strings"
)

// bindSpec is one entry of HostConfig.Binds, source:destination[:option,…]: a
// path of the host, or a volume by its name, at a path in the container.
type bindSpec struct {
	source, destination string
	options             []string
}

// parseBind reads an entry of HostConfig.Binds of a Linux engine. One that has a
// destination only is an anonymous volume: there ok is false.
func parseBind(text string) (b bindSpec, ok bool) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) < 2 {
		return bindSpec{}, false
	}
	b = bindSpec{source: parts[0], destination: parts[1]}
	if len(parts) == 3 {
		b.options = strings.Split(parts[2], ",")
	}
	return b, true
}

// String is the entry as the engine reads it.
func (b bindSpec) String() string {
	text := b.source + ":" + b.destination
	if len(b.options) > 0 {
		text += ":" + strings.Join(b.options, ",")
	}
	return text
}

// isPath tells a path of the host from the name of a volume.
func (b bindSpec) isPath() bool { return strings.HasPrefix(b.source, "/") }

// has tells whether the entry has an option.
func (b bindSpec) has(option string) bool { return slices.Contains(b.options, option) }

// without is the entry without an option.
func (b bindSpec) without(option string) bindSpec {
	b.options = slices.DeleteFunc(slices.Clone(b.options), func(o string) bool { return o == option })
	return b
}

// with is the entry with an option, once.
func (b bindSpec) with(option string) bindSpec {
	if !b.has(option) {
		b.options = append(slices.Clone(b.options), option)
	}
	return b
}
