//go:build linux

package worker

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

func TestEveryOperationHasAHandler(t *testing.T) {
	all := protocol.Operations()
	for _, op := range all {
		assert.Assert(t, operations[op].answer != nil, op)
	}
	assert.Equal(t, len(operations), len(all))
}
