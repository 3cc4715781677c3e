package protocol

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/containerd/errdefs"
)

// OpExtract reads a part of an archive as a tar.
const OpExtract Op = "extract"

// ExtractRequest asks for an entry of an archive, with everything below it; the bytes of a tar come along.
type ExtractRequest struct {
	Snapshot string `json:"snapshot"`
	Archive  int    `json:"archive"`
	Root     string `json:"root,omitempty"`
	// Path is relative to the root of the volume, which is empty.
	Path Path `json:"path"`
	// Directory says that it has to be a directory.
	Directory bool `json:"directory,omitempty"`
	// Follow says that a symlink is not what is wanted: it is answered with a Link, as a directory always is.
	Follow bool `json:"follow,omitempty"`
	// Look says that nothing is to be written.
	Look bool `json:"look,omitempty"`
	// Name is what the entry is called in the tar.
	Name Path `json:"name"`
}

// Op implements Arguments.
func (ExtractRequest) Op() Op { return OpExtract }

func (r ExtractRequest) validate() error {
	if r.Name == "" || strings.ContainsRune(string(r.Path+r.Name), 0) {
		return fmt.Errorf("path %q, to be called %q: %w", r.Path, r.Name, errdefs.ErrInvalidArgument)
	}
	return nil
}

// ExtractResult says whether there was anything. If it says more than nothing, no tar was written.
type ExtractResult struct {
	Missing bool  `json:"missing,omitempty"` // the archive has nothing at the path
	Link    *Link `json:"link,omitempty"`    // the path leads through a symlink
}

// Link is a symlink on the way of a path. Whoever asks has to follow it, because it may lead out of the archive.
type Link struct {
	Path   Path `json:"path"`   // relative to the root of the volume
	Target Path `json:"target"` // what it says
}

// Extract writes a tar of a part of an archive to out.
func (c *Client) Extract(ctx context.Context, r ExtractRequest, out io.Writer, emit func(Event)) (ExtractResult, error) {
	return callWith[ExtractResult](ctx, c, r, Streams{Out: out}, emit)
}
