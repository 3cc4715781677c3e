package volumebackup

import (
	"errors"
	"fmt"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// TestFullStoreIsToldFromAFullVolume goes by what the worker could not write.
func TestFullStoreIsToldFromAFullVolume(t *testing.T) {
	s := &session{store: "mine"}
	for path, full := range map[string]bool{"/store/tmp/id-0/0.tar": true, "big": false, "": false} {
		said := fmt.Errorf("pass: %w", &protocol.Error{Class: protocol.NoSpace, Message: "no space left on device", Path: protocol.Path(path)})
		err := s.asFull(said)
		_, ok := errors.AsType[*FullError](err)
		assert.Equal(t, ok, full, path)
		assert.ErrorIs(t, err, protocol.NoSpace)
	}
	other := &protocol.Error{Class: protocol.Internal, Path: "/store/format"}
	assert.Equal(t, s.asFull(other), error(other))
}
