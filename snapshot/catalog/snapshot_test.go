package catalog

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestSnapshotSums(t *testing.T) {
	archive := func(index int, stored int64) *labels.Archive { return &labels.Archive{Index: index, Stored: stored} }
	s := Snapshot{Record: labels.Record{Size: 5, Mounts: []labels.Mount{
		{Archive: archive(0, 100)}, {Archive: archive(1, 20)}, {Skipped: "bind"},
	}}}
	assert.Equal(t, s.StoredBytes(), int64(125))
	assert.Equal(t, s.ArchivedVolumes(), 2)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		expires time.Time
		want    bool
	}{{time.Time{}, false}, {now, true}, {now.Add(-1), true}, {now.Add(1), false}} {
		s.Expires = test.expires
		assert.Equal(t, s.Expired(now), test.want)
	}
}
