package volumebackup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// KnownImage is a root filesystem that a worker knows, with how much is in it.
type KnownImage = protocol.KnownImage

// Known tells which of these root filesystems the worker knows.
func (c *Comparer) Known(ctx context.Context, images []string) ([]KnownImage, error) {
	known, err := c.session.client.Known(ctx, images)
	if err != nil {
		return nil, fmt.Errorf("look up root filesystems in store: %w", c.session.explain(err))
	}
	return known, nil
}

// LearnOptions say which root filesystem a worker is told of.
type LearnOptions struct {
	Image string // its key
	Keep  bool   // the store keeps it; else the worker knows it as long as it lives
	// Walked is the key under which the store keeps the list for the next walk. Empty: it does not.
	Walked string
}

// Learn tells the worker what a root filesystem holds: write writes its manifest.
func (c *Comparer) Learn(ctx context.Context, o LearnOptions, write func(io.Writer) error) error {
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(out)
		_ = out.CloseWithError(err) // a pipe takes any error
		written <- err
	}()
	err := c.session.client.Learn(ctx, protocol.LearnRequest{Image: o.Image, Keep: o.Keep, Walked: o.Walked}, in, c.session.emit)
	_ = in.CloseWithError(err)
	if writeErr := <-written; writeErr != nil && (err == nil || !errors.Is(err, writeErr)) {
		err = errors.Join(writeErr, err)
	}
	if err != nil {
		return fmt.Errorf("keep what is known of a root filesystem: %w", c.session.explain(err))
	}
	return nil
}

// Recall returns the list that the store keeps for walks under a key; nil: it keeps none.
func (c *Comparer) Recall(ctx context.Context, walked string) ([]byte, error) {
	var list bytes.Buffer
	if err := c.session.client.Recall(ctx, walked, &limited{&list, protocol.MaxRecalled}); err != nil {
		return nil, fmt.Errorf("look up what is known of a root filesystem: %w", c.session.explain(err))
	}
	return list.Bytes(), nil
}

// limited is a buffer that takes no more than it may: what a worker sends is not believed.
type limited struct {
	to   *bytes.Buffer
	rest int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.rest -= len(b); l.rest < 0 {
		return 0, errors.New("the list of a root filesystem is too long")
	}
	return l.to.Write(b) //nolint:wrapcheck // a buffer has no errors
}

// WalkOptions say which root filesystem is walked.
type WalkOptions struct {
	Container string // the full ID of a container that runs, in a PID namespace of its own
	Created   int64  // when it was made, in seconds since 1970
	Known     []byte // the list of an earlier walk over a container of the same image
}

// Walked is the root filesystem of a container, as a walk has found it.
type Walked struct {
	List        []byte   // its manifest
	Mounts      []string // where something is mounted; these places are not in the list
	Files, Read int64    // how many files there are, and how many had to be read
}

// maxWalked bounds the list of a root filesystem, in bytes.
const maxWalked = 256 << 20

// WalkRoot lists what the root filesystem of a container holds, in a worker that shares the container's PID namespace and has
// no store: what it has, a privileged process of the container could reach.
func (s *Service) WalkRoot(ctx context.Context, o WalkOptions, p Progress) (Walked, error) {
	var list bytes.Buffer
	var result protocol.WalkResult
	j := job{purpose: "read the root filesystem of a container", rights: toWalk, beside: o.Container, tell: p}
	err := s.alone(ctx, j, func(session *session) (err error) {
		result, err = session.client.Walk(ctx, protocol.WalkRequest{Created: o.Created}, bytes.NewReader(o.Known), &limited{&list, maxWalked}, session.emit)
		return err
	})
	if err != nil {
		return Walked{}, fmt.Errorf("walk root filesystem: %w", err)
	}
	w := Walked{List: list.Bytes(), Files: result.Files, Read: result.Read}
	for _, place := range result.Mounts {
		w.Mounts = append(w.Mounts, string(place))
	}
	return w, nil
}
