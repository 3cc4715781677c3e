package capture

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// volumeMounts has a volume that is mounted twice, an anonymous one, and what is
// no volume or cannot be captured.
func volumeMounts() []labels.Mount {
	return []labels.Mount{
		{Type: "volume", Name: "data", Destination: "/a", RW: true},
		{Type: "bind", Source: "/etc", Destination: "/b", Skipped: skippedBind},
		{Type: "volume", Name: "data", Destination: "/c", Subpath: "part"},
		{Type: "volume", Name: strings.Repeat("0f", 32), Destination: "/d", RW: true, Anonymous: true},
		{Type: "volume", Name: "gone", Destination: "/e", Skipped: "the volume is gone"},
	}
}

func TestChooseVolumes(t *testing.T) {
	anonymous := strings.Repeat("0f", 32)
	tests := map[string]struct {
		choice VolumeChoice
		want   []volumebackup.Volume
	}{
		"all":                     {VolumeChoice{}, []volumebackup.Volume{{Number: 0, Key: "data"}, {Number: 1, Key: anonymous}}},
		"none":                    {VolumeChoice{None: true}, nil},
		"one":                     {VolumeChoice{Only: []string{anonymous}}, []volumebackup.Volume{{Number: 0, Key: anonymous}}},
		"all but one":             {VolumeChoice{Exclude: []string{anonymous}}, []volumebackup.Volume{{Number: 0, Key: "data"}}},
		"one, which is left out":  {VolumeChoice{Only: []string{"data"}, Exclude: []string{"data"}}, nil},
		"one that has no content": {VolumeChoice{Only: []string{"gone"}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mounts := volumeMounts()
			assert.NilError(t, test.choice.check(mounts))
			assert.DeepEqual(t, chooseVolumes(mounts, test.choice), test.want)
			for _, m := range mounts {
				chosen := false
				for _, v := range test.want {
					chosen = chosen || v.Key == m.Key()
				}
				assert.Equal(t, m.Skipped == "", chosen, "%+v", m)
			}
			assert.Equal(t, mounts[4].Skipped, "the volume is gone")
		})
	}
	for _, name := range []string{"never", "/etc", ""} {
		assert.ErrorContains(t, VolumeChoice{Exclude: []string{name}}.check(volumeMounts()), "mounts no volume")
	}
}

func TestRecordArchivesAtEveryMountOfAVolume(t *testing.T) {
	mounts := volumeMounts()
	mounts[3].Skipped = "left out"
	recordArchives(mounts, []volumebackup.Archive{{Key: "data", Number: 3, Root: "r", Entries: 1, Bytes: 2, Stored: 4}, {Key: mounts[3].Key()}, {Key: "gone"}, {Key: mounts[1].Key()}})
	want := labels.Archive{Root: "r", Entries: 1, Bytes: 2, Stored: 4, Index: 3}
	assert.DeepEqual(t, *mounts[0].Archive, want)
	assert.DeepEqual(t, *mounts[2].Archive, want)
	for _, i := range []int{1, 3, 4} {
		assert.Assert(t, mounts[i].Archive == nil)
	}
}
