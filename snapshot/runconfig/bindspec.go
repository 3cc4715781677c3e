package runconfig

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// bindSpec is an entry of HostConfig.Binds, source:destination[:option,...]. It mounts a path of
// the host, or a volume by name, at a path in the container.
type bindSpec struct {
	Source      string
	Destination string // clean
	written     string // the destination as the user wrote it: the engine takes /data/ for /data; empty: it is clean
	options     []string
}

// isAt reports whether the target of a mount, as users write it, is the same mount point as a destination.
func isAt(target, destination string) bool { return path.Clean(target) == path.Clean(destination) }

// parseBind reads an entry of HostConfig.Binds of a Linux engine. It returns false for an entry
// without a source, which is an anonymous volume.
func parseBind(text string) (b bindSpec, ok bool) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) < 2 {
		return bindSpec{}, false
	}
	b = bindSpec{Source: parts[0], Destination: path.Clean(parts[1]), written: parts[1]}
	if len(parts) == 3 {
		b.options = strings.Split(parts[2], ",")
	}
	return b, true
}

// String returns the entry as the engine reads it.
func (b bindSpec) String() string {
	text := b.Source + ":" + cmp.Or(b.written, b.Destination)
	if len(b.options) > 0 {
		text += ":" + strings.Join(b.options, ",")
	}
	return text
}

// IsPath tells whether the source is a path of the host rather than the name of a volume.
func (b bindSpec) IsPath() bool { return strings.HasPrefix(b.Source, "/") }

// Has tells whether the entry has an option.
func (b bindSpec) Has(option string) bool { return slices.Contains(b.options, option) }

// without returns the entry without an option.
func (b bindSpec) without(option string) bindSpec {
	b.options = slices.DeleteFunc(slices.Clone(b.options), func(o string) bool { return o == option })
	return b
}

// with returns the entry with an option, once.
func (b bindSpec) with(option string) bindSpec {
	if !b.Has(option) {
		b.options = append(slices.Clone(b.options), option)
	}
	return b
}
