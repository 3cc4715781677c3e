//go:build linux

package worker

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// describe turns an error into what survives the pipe: its message, its class, and where it happened.
func describe(err error) *protocol.Error {
	if reported, ok := errors.AsType[*protocol.Error](err); ok {
		return reported
	}
	described := &protocol.Error{Class: classify(err), Message: err.Error()}
	if damaged, ok := errors.AsType[*store.DamagedError](err); ok {
		described.Path = protocol.Path(damaged.Path)
		described.Pack, described.Offset = damaged.Pack, damaged.Offset
	}
	if large, ok := errors.AsType[*archive.TooLargeError](err); ok {
		described.Exceeded = exceeded(large)
	}
	if path, ok := errors.AsType[*os.PathError](err); ok && described.Path == "" {
		described.Path = protocol.Path(path.Path)
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok && described.Path == "" {
		described.Path = protocol.Path(link.Old)
	}
	return described
}

func exceeded(e *archive.TooLargeError) *protocol.Exceeded {
	said := protocol.Exceeded{Mount: e.Mount.Number, Limits: protocol.Limits(e.Mount.Limits), Entries: e.Size.Entries, Bytes: e.Size.Bytes}
	for _, d := range e.Largest {
		said.Largest = append(said.Largest, protocol.DirectorySize{Path: protocol.Path(d.Path), Entries: d.Size.Entries, Bytes: d.Size.Bytes})
	}
	return &said
}

func classify(err error) protocol.Class {
	var newer *store.VersionError
	var damaged *store.DamagedError
	var large *archive.TooLargeError
	switch {
	case errors.As(err, &newer):
		return protocol.NewerVersion
	case errors.As(err, &damaged):
		return protocol.Damaged
	case errors.As(err, &large):
		return protocol.TooLarge
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return protocol.NoSpace
	case errors.Is(err, context.Canceled), errors.Is(err, io.EOF):
		return protocol.Canceled
	case errdefs.IsNotFound(err):
		return protocol.NotFound
	case errdefs.IsConflict(err):
		return protocol.Conflict
	case errdefs.IsInvalidArgument(err), errdefs.IsNotImplemented(err):
		return protocol.Invalid
	default:
		return protocol.Internal
	}
}
