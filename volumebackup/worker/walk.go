//go:build linux

package worker

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// containerRoot is the root filesystem of the container in whose PID namespace the worker is: that of its first process.
const containerRoot = "/proc/1/root/."

// maxMounts bounds how many places are named where something is mounted.
const maxMounts = 10_000

// walk sends the list of what the root filesystem of a container holds.
func (s *session) walk(ctx context.Context, r protocol.WalkRequest, e *exchange) (protocol.WalkResult, error) {
	known, err := io.ReadAll(io.LimitReader(e.bytes, protocol.MaxRecalled+1))
	if err != nil {
		return protocol.WalkResult{}, fmt.Errorf("read what is known of the root filesystem: %w", err)
	}
	if len(known) > protocol.MaxRecalled {
		return protocol.WalkResult{}, fmt.Errorf("more than %d bytes are known of the root filesystem: %w", protocol.MaxRecalled, errdefs.ErrInvalidArgument)
	}
	root := s.options.WalkedRoot
	if root == "" {
		root = containerRoot
		if err := checkNamespaces(root); err != nil {
			return protocol.WalkResult{}, err
		}
	}
	walk, err := archive.WalkRoot(ctx, archive.RootOptions{Path: root, Known: known, Created: r.Created}, e.bytes, &e.counter)
	if err != nil {
		return protocol.WalkResult{}, err
	}
	if len(walk.Mounts) > maxMounts {
		return protocol.WalkResult{}, fmt.Errorf("something is mounted at %d places: %w", len(walk.Mounts), errdefs.ErrOutOfRange)
	}
	result := protocol.WalkResult{Files: walk.Files, Read: walk.Read}
	for _, place := range walk.Mounts {
		result.Mounts = append(result.Mounts, protocol.Path(place))
	}
	return result, nil
}

// allUsers is what a process sees that is in no user namespace of its own.
const allUsers = "0 0 4294967295"

// checkNamespaces fails unless the root filesystem of another container can be seen as its engine sees it.
func checkNamespaces(root string) error {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return fmt.Errorf("look for a user namespace: %w", err)
	}
	if strings.Join(strings.Fields(string(text)), " ") != allUsers {
		return fmt.Errorf("the engine has users of its own: %w", errdefs.ErrNotImplemented)
	}
	return archive.CheckRoot(root)
}
