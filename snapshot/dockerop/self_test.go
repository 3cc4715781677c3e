package dockerop

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

func TestAProgramKnowsTheContainerThatItRunsIn(t *testing.T) {
	inside, outside := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	mounts := []byte("1041 1018 0:47 / / rw,relatime master:401 - overlay overlay rw,lowerdir=/x\n" +
		"1053 1041 254:0 /var/lib/docker/containers/" + inside + "/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw\n" +
		"1054 1018 0:50 / /var/lib/docker/containers/" + outside + "/mounts/shm rw,nosuid - tmpfs shm rw,size=65536k\n" +
		"1055 1041 254:0 /var/lib/docker/volumes/" + outside + "/_data /data rw,relatime - ext4 /dev/vda rw\n")
	assert.Assert(t, RunsIn(mounts, inside))
	assert.Assert(t, !RunsIn(mounts, outside))
	assert.Assert(t, !RunsIn(nil, inside))
}
