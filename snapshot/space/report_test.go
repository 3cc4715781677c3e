package space

import (
	"math/rand/v2"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

func snapshotOf(name, image, from string, size int64) catalog.Snapshot {
	return catalog.Snapshot{ImageID: image, Record: labels.Record{Container: labels.Container{Name: name, ImageID: from}, Size: size}}
}

func everything(catalog.Snapshot) bool { return true }

func byName(s catalog.Snapshot) string { return s.Container.Name }

func TestALayerIsOfAllThatStandOnItAndABaseStays(t *testing.T) {
	all := []catalog.Snapshot{snapshotOf("web", "s1", "base", 10), snapshotOf("api", "s2", "s1", 20), snapshotOf("db", "s3", "gone", 30)}
	sizes := map[string]int64{"base": 1000, "s1": 1011, "s2": 1033, "s3": 2030}
	m := Measured{Layers: layers(all, sizes), Bases: bases(all, sizes)}

	r := NewReport(all, m, everything, byName)
	assert.DeepEqual(t, r.All.Images, Share{Unique: 11 + 22 + 30 + 2000, Shared: 1000})
	assert.Equal(t, r.All.Snapshots, 3)
	assert.DeepEqual(t, r.Groups, []Occupied{
		{Group: "web", Snapshots: 1, Images: Share{Shared: 1011}},
		{Group: "api", Snapshots: 1, Images: Share{Unique: 22, Shared: 1011}},
		{Group: "db", Snapshots: 1, Images: Share{Unique: 2030}},
	})

	// What a snapshot that is left out holds is shared.
	r = NewReport(all, m, func(s catalog.Snapshot) bool { return s.ImageID == "s1" }, byName)
	assert.DeepEqual(t, r.All.Images, Share{Shared: 1011})
	assert.Equal(t, len(r.Snapshots), 1)
}

func TestTheContentOfVolumesIsCountedForEachSnapshotAndStoredOnce(t *testing.T) {
	with := func(s catalog.Snapshot, bytes int64) catalog.Snapshot {
		s.Mounts = []labels.Mount{{Archive: &labels.Archive{Bytes: bytes}}, {}}
		return s
	}
	all := []catalog.Snapshot{with(snapshotOf("web", "s1", "", 0), 100), with(snapshotOf("web", "s2", "", 0), 120), snapshotOf("web", "s3", "", 0)}
	m := Measured{Pieces: []retention.Set{
		{Rest: retention.NoRest, Snapshot: 0, Bytes: 5},
		{Rest: 0, Snapshot: 1, Bytes: 50},
		{Rest: 1, Snapshot: retention.Stranger, Bytes: 7},
	}}
	r := NewReport(all, m, everything, byName)
	assert.DeepEqual(t, r.All, Occupied{Snapshots: 3, Archived: 2, Logical: 220, Archives: Share{Unique: 55, Shared: 7}})
	assert.DeepEqual(t, r.Each[0].Archives, Share{Unique: 5, Shared: 57})
	assert.DeepEqual(t, r.Each[1].Archives, Share{Shared: 57})
}

// Whatever the sets: every byte is counted once as unique, or for each of those that share it.
func TestSharesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		groups := make([]int, 1+r.IntN(6))
		for i := range groups {
			groups[i] = r.IntN(4) - 1
		}
		var sets []retention.Set
		total := int64(0)
		for i := range r.IntN(20) {
			set := retention.Set{Rest: r.IntN(i+1) - 1, Snapshot: r.IntN(len(groups)+1) - 1, Bytes: r.Int64N(100)}
			sets = append(sets, set)
			total += set.Bytes
		}
		unique := int64(0)
		for _, one := range shares(sets, groups, 3) {
			unique += one.Unique
			assert.Assert(t, one.Bytes() <= total)
		}
		assert.Assert(t, unique <= total)
		one := shares(sets, make([]int, len(groups)), 1)[0]
		strangers := int64(0)
		for i, set := range sets {
			if holdersOf(sets, i, make([]int, len(groups)))[nobody] {
				strangers += set.Bytes
			}
		}
		assert.Equal(t, one.Unique, total-strangers)
	}
}
