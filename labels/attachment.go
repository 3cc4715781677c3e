package labels

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxAttachments is how many attachments a snapshot can have.
const MaxAttachments = 1000

const (
	maxAttachmentName = 255 // bytes, as of a file's name
	maxMediaType      = 255
	sha256Digits      = 64
)

// Attachment is a file that was stored with the snapshot.
type Attachment struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"` // in hex
	MediaType string `json:"media_type"`
}

// CheckAttachmentName tells why name cannot be that of an attachment. It becomes the
// name of a file, in the store and on any system that it is restored to.
func CheckAttachmentName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("invalid attachment name %q: it names no file", name)
	case len(name) > maxAttachmentName:
		return fmt.Errorf("invalid attachment name %.32q…: it is longer than %d bytes", name, maxAttachmentName)
	case strings.ContainsAny(name, `/\:`):
		return fmt.Errorf("invalid attachment name %q: it may not have a slash, backslash or colon", name)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("invalid attachment name %q: it has characters that cannot be printed", name)
	}
	return nil
}

func (d *decoder) attachments() []Attachment {
	all := list[Attachment](d, KeyAttachments, MaxAttachments)
	seen := make(map[string]bool, len(all))
	for _, a := range all {
		switch err := CheckAttachmentName(a.Name); {
		case err != nil:
			d.fail(KeyAttachments, err)
		case seen[a.Name]:
			d.fail(KeyAttachments, fmt.Errorf("there are two of the name %q", a.Name))
		case a.Bytes < 0:
			d.fail(KeyAttachments, errors.New("a size is negative"))
		case !IsDigits(a.SHA256, sha256Digits, sha256Digits):
			d.fail(KeyAttachments, errors.New("a digest is not a SHA-256"))
		case len(a.MediaType) > maxMediaType:
			d.fail(KeyAttachments, fmt.Errorf("a media type is longer than %d bytes", maxMediaType))
		}
		seen[a.Name] = true
	}
	return all
}
