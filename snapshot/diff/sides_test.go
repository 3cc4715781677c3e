package diff

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// What a snapshot has left out is not looked at in the volume as it is now, but what it has is.
func TestAVolumeIsComparedWithoutWhatIsExcluded(t *testing.T) {
	archived := content{
		isThere: true, name: "data", archive: &volumebackup.ArchiveRef{Snapshot: "one", Archive: 2, Root: "root"},
		excluded: &labels.Exclusions{Patterns: []string{"cache"}, Entries: 3, Kept: &labels.KeptArchive{Snapshot: "zero"}},
	}
	live := content{isThere: true, name: "data", live: "data"}
	parts, err := pair(side{volumes: map[string]content{"/data": archived}}, side{volumes: map[string]content{"/data": live, "/new": live}}, Options{}, nil)
	assert.NilError(t, err)
	assert.DeepEqual(t, parts[0].now.tree(), volumebackup.ComparedTree{Volume: "data", Excluded: &labels.Exclusions{
		Patterns: []string{"cache"}, Kept: &labels.KeptArchive{Snapshot: "one", Index: 2, Root: "root"},
	}})
	assert.Assert(t, parts[1].now.tree().Excluded == nil, "a volume that the snapshot does not have is all new")
	assert.Equal(t, archived.excluded.Entries, int64(3))
}
