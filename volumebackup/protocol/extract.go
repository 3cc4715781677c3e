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
	// Directory says that it has to be a directory. If it is a symlink, it is followed.
	Directory bool `json:"directory,omitempty"`
	// Name is what the entry is called in the tar.
	Name Path `json:"name"`
	// Destination is where the volume is mounted: absolute symlinks are understood from there.
	Destination Path `json:"destination"`
}

// Op implements Arguments.
func (ExtractRequest) Op() Op { return OpExtract }

func (r ExtractRequest) validate() error {
	if r.Name == "" || strings.ContainsRune(string(r.Path+r.Name), 0) {
		return fmt.Errorf("path %q, to be called %q: %w", r.Path, r.Name, errdefs.ErrInvalidArgument)
	}
	return nil
}

// ExtractResult says whether there was anything.
type ExtractResult struct {
	Missing bool `json:"missing,omitempty"` // the archive has nothing at the path
}

// Extract writes a tar of a part of an archive to out.
func (c *Client) Extract(ctx context.Context, r ExtractRequest, out io.Writer, emit func(Event)) (ExtractResult, error) {
	return callWith[ExtractResult](ctx, c, r, Streams{Out: out}, emit)
}
