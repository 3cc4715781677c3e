package labels

import "strings"

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
