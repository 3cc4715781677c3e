package labels

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key identifies what a mount shows, wherever and however often it is mounted: archives are matched
// with mounts by it, and a store keeps what it knows of the live content under it. Within one engine
// two mounts with the same key have the same content.
//
// A volume's key is its name. Its subpath is not part of it: the archive is of the whole volume. A
// bind mount's key is the host's directory, with one slash before it, which no volume's name begins
// with. Other mounts have no content that could be archived, and no key.
func (m Mount) Key() string {
	switch {
	case m.Type == "volume":
		return m.Name
	case m.Type == "bind" && m.Source != "":
		return "/" + strings.TrimPrefix(m.Source, "/")
	}
	return ""
}

// Word is what a mount with content is called: a volume by its name, a bind mount by where it is mounted.
func (m Mount) Word() string {
	if m.Name != "" {
		return m.Name
	}
	return m.Destination
}

// Describe says in words what a mount with content is.
func (m Mount) Describe() string {
	if m.Name != "" {
		return "volume " + m.Name
	}
	return m.Type + " mount on " + m.Destination
}

// IsPathKey tells whether a key is a bind mount's: the path of a directory on the engine's host.
func IsPathKey(key string) bool { return strings.HasPrefix(key, "/") }

// maxPathKey is the longest path that Linux takes.
const maxPathKey = 4096

// IsArchivablePath tells whether a key is that of a bind mount whose content may be archived and written back. It has to
// be a path as engines report it, so that two keys of one directory are the same. The root of the host holds the engine.
func IsArchivablePath(key string) bool {
	return IsPathKey(key) && key != "/" && len(key) < maxPathKey && path.Clean(key) == key &&
		utf8.ValidString(key) && !strings.ContainsFunc(key, unicode.IsControl)
}

// DescribeKey says in words what a key identifies, for messages.
func DescribeKey(key string) string {
	if IsPathKey(key) {
		return "bind mount " + key
	}
	return "volume " + key
}
