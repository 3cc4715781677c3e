package volumebackup

import (
	"context"
	"errors"
	"io"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// ExtractOptions say which part of an archive is read.
type ExtractOptions struct {
	protocol.ExtractRequest
	Volume string // whose archive it is, for people
}

// ErrNoEntry says that an archive has nothing at the path that was asked for.
var ErrNoEntry = errors.New("the archive has no such entry")

// Extract writes an entry of an archive, with everything below it, to out as a tar. It checks what it reads, the list of
// files at the end: if it fails, what was written is not to be trusted.
func (s *Service) Extract(ctx context.Context, o ExtractOptions, out io.Writer, p Progress) error {
	p = p.naming(map[int]string{0: o.Volume})
	return s.alone(ctx, job{purpose: "read files of " + o.Snapshot, rights: toLook, tell: p}, func(session *session) error {
		result, err := session.client.Extract(ctx, o.ExtractRequest, out, session.emit)
		if err == nil && result.Missing {
			err = ErrNoEntry
		}
		return err
	})
}
