package labels

import (
	"fmt"
	"io"
	"regexp"
	"time"
)

// ID names a snapshot: YYYYMMDD-HHMMSS-xxxxxx, the UTC second in which it was
// taken and six random hex digits. IDs sort by time and are legal image tags.
type ID string

const idTime = "20060102-150405"

// IDTimeLength is how many characters at the beginning of an ID are the time.
const IDTimeLength = len(idTime)

// IDTime is how the IDs of snapshots that are taken in that second begin.
func IDTime(t time.Time) string { return t.UTC().Format(idTime) }

var idPattern = regexp.MustCompile(`^[0-9]+-[0-9]+-[0-9a-f]+$`)

// isID tells whether s looks like an ID.
func isID(s string) bool {
	const digits = len("-xxxxxx")
	return len(s) == len(idTime)+digits && s[len("YYYYMMDD")] == '-' && s[len(idTime)] == '-' && idPattern.MatchString(s)
}

// NewID makes an ID for a snapshot taken at now, with three bytes of random.
func NewID(now time.Time, random io.Reader) (ID, error) {
	var b [3]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make snapshot ID: %w", err)
	}
	return ID(fmt.Sprintf("%s-%x", IDTime(now), b)), nil
}

// ParseID checks that s is an ID, its date and time included.
func ParseID(s string) (ID, error) {
	if !isID(s) {
		return "", fmt.Errorf("%q is not a snapshot ID", s)
	}
	if _, err := time.Parse(idTime, s[:len(idTime)]); err != nil {
		return "", fmt.Errorf("%q is not a snapshot ID: %w", s, err)
	}
	return ID(s), nil
}

// Latest is the tag that follows the newest snapshot of a container.
const Latest = "latest"

// CheckName tells why name cannot be the name of a snapshot: names become image
// tags, next to the IDs and latest.
func CheckName(name string) error {
	switch {
	case !IsTag(name):
		return fmt.Errorf("invalid snapshot name %q: use 1 to 128 letters, digits, '_', '.' and '-', not beginning with '.' or '-'", name)
	case name == Latest:
		return fmt.Errorf("invalid snapshot name %q: it always means the newest snapshot", name)
	case isID(name):
		return fmt.Errorf("invalid snapshot name %q: it reads like a snapshot ID", name)
	}
	return nil
}

// Title is how messages call a snapshot: by its name, with the ID beside it, or by its ID if it has no name.
func Title(name string, id ID) string {
	if name == "" {
		return string(id)
	}
	return fmt.Sprintf("%s (%s)", name, id)
}
