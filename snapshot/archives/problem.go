package archives

import (
	"errors"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// Problem makes a problem of what a worker says about an archive. Other
// errors are returned.
func Problem(volume string, err error) ([]plan.Problem, error) {
	kind := plan.ProblemArchive
	switch {
	case err == nil:
		return nil, nil
	case cerrdefs.IsResourceExhausted(err):
		kind = plan.ProblemNoSpace
	case errors.Is(err, protocol.NotFound):
		kind = plan.ProblemNoArchive
	case !errors.Is(err, protocol.Damaged):
		return nil, err
	}
	return []plan.Problem{{Kind: kind, Subject: volume, Text: err.Error()}}, nil
}
