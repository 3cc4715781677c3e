package labels

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Exclusions say which entries of a volume are not in its archive. Every pattern is relative to the
// root of the volume.
type Exclusions struct {
	// Patterns are names, as node_modules, or several names in a row, as src/generated. One that begins
	// with a slash begins at the root of the volume, and one that ends with a slash means a directory.
	Patterns []string `json:"patterns,omitzero"`
	// Globs are for names, as *.log.
	Globs []string `json:"globs,omitzero"`
	// Included are patterns of what is in the archive, whatever else is said.
	Included []string `json:"included,omitzero"`
	// Gitignore says that the .gitignore files in the volume count.
	Gitignore bool `json:"gitignore,omitzero"`
	// Kept is an archive whose entries are not excluded, whatever a .gitignore says by now. A safety snapshot keeps
	// what the restore puts back: so it has all that the restore changes.
	Kept *KeptArchive `json:"kept,omitempty"`
	// Entries is how many entries were left out. A directory counts once, for nobody looks into it.
	Entries int64 `json:"entries,omitzero"`
}

// KeptArchive names an archive in the store.
type KeptArchive struct {
	Snapshot ID     `json:"snapshot"`
	Index    int    `json:"index"`
	Root     string `json:"root"` // as in [Archive]
}

// Bounds of exclusions: labels may be anybody's, and every entry of a volume is compared with each pattern.
const (
	maxPatterns      = 1000
	maxPatternLength = 4096
)

// IsEmpty tells whether nothing is excluded. Included patterns alone exclude nothing.
func (e *Exclusions) IsEmpty() bool {
	return e == nil || len(e.Patterns)+len(e.Globs) == 0 && !e.Gitignore
}

// Check tells why exclusions make no sense.
func (e *Exclusions) Check() error {
	if e == nil {
		return nil
	}
	if len(e.Patterns)+len(e.Globs)+len(e.Included) > maxPatterns {
		return fmt.Errorf("more than %d patterns", maxPatterns)
	}
	if e.Entries < 0 {
		return errors.New("a negative number of excluded entries")
	}
	if k := e.Kept; k != nil {
		root, err := hex.DecodeString(k.Root)
		if _, idErr := ParseID(string(k.Snapshot)); idErr != nil || err != nil || len(root) != sha256.Size || k.Index < 0 || k.Index > maxMounts {
			return errors.New("the archive that is kept is none")
		}
	}
	for _, list := range [][]string{e.Patterns, e.Included} {
		for _, pattern := range list {
			if err := CheckExclude(pattern); err != nil {
				return err
			}
		}
	}
	for _, glob := range e.Globs {
		if err := CheckExcludeGlob(glob); err != nil {
			return err
		}
	}
	return nil
}

// CheckExclude tells why text cannot be one of [Exclusions.Patterns], or of those that are included.
func CheckExclude(text string) error {
	if len(text) > maxPatternLength || strings.Contains(text, "\x00") {
		return fmt.Errorf("invalid pattern %.64q: it is longer than %d bytes, or no path has it", text, maxPatternLength)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(text, "/"), "/"), "/") {
		if name == "" || name == "." || name == ".." {
			return fmt.Errorf("invalid pattern %q: use names with slashes between them, as in src/generated", text)
		}
	}
	return nil
}

// CheckExcludeGlob tells why text cannot be one of [Exclusions.Globs].
func CheckExcludeGlob(text string) error {
	if _, err := path.Match(text, ""); err != nil || text == "" || len(text) > maxPatternLength {
		return fmt.Errorf("invalid pattern %.64q: use *, ?, and [a-z] as a shell does", text)
	}
	if strings.Contains(text, "/") {
		return fmt.Errorf("invalid pattern %q: it is compared with names, which have no slash", text)
	}
	return nil
}
