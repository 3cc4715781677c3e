package runconfig

import (
	"slices"
	"strings"
)

// bindSpec is one entry of HostConfig.Binds, source:destination[:option,…]: a
// path of the host, or a volume by its name, at a path in the container.
type bindSpec struct {
	Source, Destination string
	options             []string
}

// ParseBind reads an entry of HostConfig.Binds of a Linux engine. One that has a
// destination only is an anonymous volume: there ok is false.
func ParseBind(text string) (b bindSpec, ok bool) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) < 2 {
		return bindSpec{}, false
	}
	b = bindSpec{Source: parts[0], Destination: parts[1]}
	if len(parts) == 3 {
		b.options = strings.Split(parts[2], ",")
	}
	return b, true
}

// String is the entry as the engine reads it.
func (b bindSpec) String() string {
	text := b.Source + ":" + b.Destination
	if len(b.options) > 0 {
		text += ":" + strings.Join(b.options, ",")
	}
	return text
}

// IsPath tells a path of the host from the name of a volume.
func (b bindSpec) IsPath() bool { return strings.HasPrefix(b.Source, "/") }

// Has tells whether the entry has an option.
func (b bindSpec) Has(option string) bool { return slices.Contains(b.options, option) }

// without is the entry without an option.
func (b bindSpec) without(option string) bindSpec {
	b.options = slices.DeleteFunc(slices.Clone(b.options), func(o string) bool { return o == option })
	return b
}

// with is the entry with an option, once.
func (b bindSpec) with(option string) bindSpec {
	if !b.Has(option) {
		b.options = append(slices.Clone(b.options), option)
	}
	return b
}
