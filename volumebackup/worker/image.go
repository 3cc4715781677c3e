//go:build linux

package worker

import (
	"context"
	"fmt"
	"io"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// maxImage bounds the manifest of a root filesystem, which the worker keeps in memory.
const maxImage = 256 << 20

// learn takes the manifest of a root filesystem.
func (s *session) learn(ctx context.Context, r protocol.LearnRequest, e *exchange) (protocol.None, error) {
	content, err := io.ReadAll(io.LimitReader(e.bytes, maxImage+1))
	if err != nil {
		return protocol.None{}, fmt.Errorf("read what the root filesystem holds: %w", err)
	}
	if len(content) > maxImage {
		return protocol.None{}, fmt.Errorf("the list of the files of the root filesystem is longer than %d bytes: %w", maxImage, errdefs.ErrInvalidArgument)
	}
	m, err := s.store.ReadManifest(r.Image, content)
	if err != nil {
		return protocol.None{}, err
	}
	err = m.Each(func(*manifest.Entry) error { return context.Cause(ctx) })
	m.Close()
	if err != nil {
		return protocol.None{}, err
	}
	key := r.Image
	if !r.Keep {
		s.images[r.Image] = content
		key = r.Walked
	}
	if key == "" {
		return protocol.None{}, nil
	}
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.None{}, err
	}
	defer unlock()
	return protocol.None{}, s.store.KeepImage(key, content)
}

// known tells which root filesystems need not be learnt. One that is damaged has to.
func (s *session) known(ctx context.Context, r protocol.KnownRequest, _ *exchange) (protocol.KnownResult, error) {
	var result protocol.KnownResult
	for _, key := range r.Images {
		m, err := s.openImage(key)
		if err != nil {
			continue
		}
		err = m.Each(func(*manifest.Entry) error { return context.Cause(ctx) })
		summary := m.Summary()
		m.Close()
		if err == nil {
			result.Images = append(result.Images, protocol.KnownImage{Image: key, Entries: summary.Entries, Bytes: summary.Bytes})
		}
	}
	return result, context.Cause(ctx)
}

// recall sends the list that a walk has left in the store.
func (s *session) recall(ctx context.Context, r protocol.RecallRequest, e *exchange) (protocol.None, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.None{}, err
	}
	defer unlock()
	return protocol.None{}, s.store.CopyImage(r.Walked, protocol.MaxRecalled, e.bytes)
}

func (s *session) openImage(key string) (*store.Manifest, error) {
	if content, learnt := s.images[key]; learnt {
		return s.store.ReadManifest(key, content)
	}
	return s.store.OpenImage(key)
}
