package labels

import "regexp"

// Lengths are checked beside the expressions: a program that lives for a tenth of
// a second should not spend a hundredth of that on compiling counted repetitions.
var (
	tagPattern       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	containerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	hexPattern       = regexp.MustCompile(`^[0-9a-f]+$`)
)

const maxTag = 128

// IsTag tells whether s follows the grammar of image tags (distribution/reference).
func IsTag(s string) bool { return len(s) <= maxTag && tagPattern.MatchString(s) }

// IsContainerName tells whether s follows the engine's grammar of names: of
// containers, and of volumes.
func IsContainerName(s string) bool { return containerPattern.MatchString(s) }

// IsDigits tells whether s is hex digits, lower case and so many: an ID of the
// engine, or the beginning of one.
func IsDigits(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && hexPattern.MatchString(s)
}
