package volumebackup

import (
	"context"
	"errors"
	"io"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// ExtractOptions say which part of an archive is read.
type ExtractOptions = protocol.ExtractRequest

// Link is a symlink on the way of a path. Its path is relative to the root of the volume.
type Link = protocol.Link

// ErrNoEntry says that an archive has nothing at the path that was asked for.
var ErrNoEntry = errors.New("the archive has no such entry")

// Extractor reads files of archives of one store. Close ends it.
type Extractor struct {
	session *session
	tell    Progress
}

// OpenExtractor starts a worker that reads files. purpose is for people.
func (s *Service) OpenExtractor(ctx context.Context, purpose string, p Progress) (*Extractor, error) {
	session, err := s.start(ctx, job{purpose: purpose, rights: toLook}, p)
	if err != nil {
		return nil, err
	}
	return &Extractor{session: session, tell: p}, nil
}

// Close ends the worker and removes it.
func (x *Extractor) Close() error { return x.session.Close() }

// Extract writes an entry of an archive, with everything below it, to out as a tar. It checks what it reads, the list of
// files at the end: if it fails, what was written is not to be trusted. It fails with [ErrNoEntry] if there is nothing.
// It follows no symlink: if one is on the way, it returns that, and has written nothing. volume is the name of the volume,
// for people.
func (x *Extractor) Extract(ctx context.Context, o ExtractOptions, volume string, out io.Writer) (*Link, error) {
	result, err := x.session.client.Extract(ctx, o, out, x.tell.naming(map[int]string{0: volume}))
	if err != nil {
		return nil, x.session.explain(err)
	}
	if result.Missing {
		return nil, ErrNoEntry
	}
	return result.Link, nil
}
