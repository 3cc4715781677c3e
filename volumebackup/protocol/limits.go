package protocol

import (
	"fmt"

	"github.com/containerd/errdefs"
)

// Limits stop a capture before anything is stored. Zero means no limit.
type Limits struct {
	Entries int64 `json:"entries,omitzero"`
	Bytes   int64 `json:"bytes,omitzero"` // of content, without holes
}

func (l Limits) validate() error {
	if l.Entries < 0 || l.Bytes < 0 {
		return fmt.Errorf("a limit is negative: %w", errdefs.ErrInvalidArgument)
	}
	return nil
}

// Exceeded says what is too large to be captured.
type Exceeded struct {
	Mount   int             `json:"mount"` // its number
	Limits  Limits          `json:"limits"`
	Entries int64           `json:"entries"`
	Bytes   int64           `json:"bytes"`
	Largest []DirectorySize `json:"largest,omitempty"` // the ten largest directories, the largest first
}

// DirectorySize is how much of a mount is in one of its directories, and in those below.
type DirectorySize struct {
	Path    Path  `json:"path"`
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
}
