//go:build linux

package worker

import (
	"encoding/hex"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// parseRoot reads the root of an archive; none if it is empty.
func parseRoot(root string) (*manifest.Sum, error) {
	if root == "" {
		return nil, nil //nolint:nilnil // no root is no error
	}
	var sum manifest.Sum
	decoded, err := hex.DecodeString(root)
	if err != nil || len(decoded) != len(sum) {
		return nil, fmt.Errorf("root %q of archive: %w", root, errdefs.ErrInvalidArgument)
	}
	copy(sum[:], decoded)
	return &sum, nil
}
