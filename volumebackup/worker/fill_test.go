//go:build linux

package worker

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

func TestFillMakesEveryVolumeWhatTheArchiveSays(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume(0))
	c := w.connect()
	taken := w.snapshot(c, "first", protocol.Mount{Number: 0, Key: "data"}).Archives[0]
	request := protocol.FillRequest{Snapshot: "first", Root: taken.Root}
	_, err := c.Fill(t.Context(), request, nil)
	assert.ErrorContains(t, err, "no volume to fill")
	var made []string
	for n := 10; n < 13; n++ {
		made = append(made, w.volume(n))
		request.Mounts = append(request.Mounts, protocol.Mount{Number: n, Key: string(rune('a' + n))})
	}
	result, err := c.Fill(t.Context(), request, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(result.Volumes), 3)
	for n, volume := range made {
		assert.Equal(t, result.Volumes[n].Entries, taken.Entries)
		archivetest.Equal(t, archivetest.Describe(t, volume), archivetest.Describe(t, w.volume(0)))
	}
	request.Archive = 1
	_, err = c.Fill(t.Context(), request, nil)
	assert.ErrorIs(t, err, protocol.NotFound)
}
