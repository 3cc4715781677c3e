package snapshot

import (
	"errors"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
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
		"all":                     {VolumeChoice{}, []volumebackup.Volume{{Number: 0, Name: "data"}, {Number: 1, Name: anonymous}}},
		"none":                    {VolumeChoice{None: true}, nil},
		"one":                     {VolumeChoice{Only: []string{anonymous}}, []volumebackup.Volume{{Number: 0, Name: anonymous}}},
		"all but one":             {VolumeChoice{Exclude: []string{anonymous}}, []volumebackup.Volume{{Number: 0, Name: "data"}}},
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
					chosen = chosen || v.Name == m.Name
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
	recordArchives(mounts, []volumebackup.Archive{{Volume: "data", Number: 3, Root: "r", Entries: 1, Bytes: 2, Stored: 4}, {Volume: mounts[3].Name}, {Volume: "gone"}})
	want := labels.Archive{Root: "r", Entries: 1, Bytes: 2, Stored: 4, Index: 3}
	assert.DeepEqual(t, *mounts[0].Archive, want)
	assert.DeepEqual(t, *mounts[2].Archive, want)
	for _, i := range []int{1, 3, 4} {
		assert.Assert(t, mounts[i].Archive == nil)
	}
}

func TestCopyVolumeIsSafe(t *testing.T) {
	s := captured()
	tests := map[string]struct {
		m    labels.Mount
		want volume.CreateOptions
	}{
		"named": {
			labels.Mount{Name: "data", Driver: "local", Labels: map[string]string{"own": "1", "com.docker.compose.volume": "data", labels.KeyRestoredFrom: "older"}},
			volume.CreateOptions{Name: "data-7", Driver: "local", Labels: map[string]string{"own": "1"}},
		},
		"anonymous": {
			labels.Mount{Name: strings.Repeat("0f", 32), Anonymous: true, Driver: "local", Labels: map[string]string{labelAnonymous: ""}},
			volume.CreateOptions{Name: "0f0f0f0f0f0f-7", Driver: "local", Labels: map[string]string{}},
		},
		"with a quota": {
			labels.Mount{Name: "q", Driver: "local", Options: map[string]string{"size": "5g"}},
			volume.CreateOptions{Name: "q-7", Driver: "local", DriverOpts: map[string]string{"size": "5g"}, Labels: map[string]string{}},
		},
		"on a network share": {
			labels.Mount{Name: "n", Driver: "local", Options: map[string]string{"type": "nfs", "device": ":/export"}},
			volume.CreateOptions{Name: "n-7", Driver: "local", Labels: map[string]string{}},
		},
		"on the host's root": {
			labels.Mount{Name: "h", Driver: "local", Options: map[string]string{"o": "bind", "device": "/"}},
			volume.CreateOptions{Name: "h-7", Driver: "local", Labels: map[string]string{}},
		},
		"of another driver": {
			labels.Mount{Name: "c", Driver: "rclone", Options: map[string]string{"remote": "x"}},
			volume.CreateOptions{Name: "c-7", Driver: "local", Labels: map[string]string{}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Labels[labels.KeyVersion], test.want.Labels[labels.KeyRestoredFrom] = "1", string(s.ID)
			assert.DeepEqual(t, copyVolume(s, test.m, "7").create, test.want)
		})
	}
}

func TestPlanVolumesPointsEveryMountAtACopy(t *testing.T) {
	anonymous := strings.Repeat("0f", 32)
	s := captured()
	s.Mounts = []labels.Mount{
		{Type: "volume", Name: "data", Destination: "/bind", RW: true, Archive: &labels.Archive{Entries: 5, Bytes: 9}},
		{Type: "volume", Name: "data", Destination: "/mount", Subpath: "part", Archive: &labels.Archive{Entries: 5, Bytes: 9}},
		{Type: "volume", Name: anonymous, Anonymous: true, Destination: "/declared", RW: true, Archive: &labels.Archive{Entries: 1}},
		{Type: "volume", Name: "empty", Destination: "/empty", Archive: &labels.Archive{Entries: 1}},
		{Type: "volume", Name: "nocopy", Destination: "/relabelled", RW: true, Archive: &labels.Archive{Entries: 1}},
		{Type: "volume", Name: "lost", Destination: "/lost", RW: true, Skipped: "why"},
		{Type: "bind", Source: "/srv", Destination: "/srv", RW: true},
	}
	asCaptured := func() *spec {
		return &spec{host: container.HostConfig{
			Binds:  []string{"data:/bind:z", "/srv:/srv", "empty:/empty:ro", "nocopy:/relabelled:z", "lost:/lost"},
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "data", Target: "/mount", ReadOnly: true, VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: map[string]string{"a": "b"}}}},
		}}
	}
	sp := asCaptured()
	made, plan := sp.planVolumes(s, VolumesNew, "7")
	assert.Equal(t, plan.String(), "create volume data-7 (5 entries, 9 bytes of data)\n"+
		"create anonymous volume /declared (1 entries, 0 bytes of "+anonymous+")\n"+
		"create volume empty-7 (1 entries, 0 bytes of empty)\n"+
		"create volume nocopy-7 (1 entries, 0 bytes of nocopy)\n"+
		"create volume lost-7 (empty)\n")
	assert.Equal(t, missingArchives(made).String(), "leave out lost (the snapshot does not hold its content; the new volume is empty)\n")
	assert.DeepEqual(t, sp.host.Binds, []string{"data-7:/bind:z", "/srv:/srv", "empty-7:/empty:ro,nocopy", "nocopy-7:/relabelled:z,nocopy", "lost-7:/lost"})
	assert.DeepEqual(t, sp.host.Mounts, []mount.Mount{
		{Type: mount.TypeVolume, Source: "data-7", Target: "/mount", ReadOnly: true, VolumeOptions: &mount.VolumeOptions{NoCopy: true, Subpath: "part"}},
		{Type: mount.TypeVolume, Target: "/declared"},
	})

	sp = asCaptured()
	made, plan = sp.planVolumes(s, VolumesShared, "7")
	assert.Equal(t, len(made)+len(plan), 0)
	assert.DeepEqual(t, sp.host, asCaptured().host)

	made, _ = asCaptured().planVolumes(s, VolumesNone, "7")
	assert.Equal(t, len(missingArchives(made)), 5)
}

func TestCaptureMountsKnowsAnonymousVolumesAndSubpaths(t *testing.T) {
	docker := newFakeDocker()
	c := docker.create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{Mounts: []mount.Mount{
		{Type: mount.TypeVolume, Source: "labelled", Target: "/labelled", VolumeOptions: &mount.VolumeOptions{Subpath: "deep"}},
		{Type: "npipe", Source: "x", Target: "/pipe"},
		{Type: mount.TypeTmpfs, Target: "/tmp"},
	}})
	docker.findVolume("labelled").labels = map[string]string{labelAnonymous: ""}
	mounts, err := docker.engine().captureMounts(t.Context(), c.inspect(false))
	assert.NilError(t, err)
	assert.Equal(t, len(mounts), 4)
	assert.Assert(t, mounts[0].Anonymous && mounts[0].Destination == "/anonymous")
	assert.Assert(t, mounts[1].Anonymous && mounts[1].Subpath == "deep")
	assert.Equal(t, mounts[2].Skipped, skippedOther)
	assert.Equal(t, mounts[3].Skipped, skippedTmpfs)
}

func TestRestoreRefusesAVolumeThatExistsAlready(t *testing.T) {
	docker := newFakeDocker()
	docker.withVolumes()
	docker.create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	snapshotOf(t, docker, CreateOptions{Container: "web"})
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: "data-000001"})
	assert.NilError(t, err)
	before := docker.world()
	_, err = docker.engine().Restore(t.Context(), RestoreOptions{Snapshot: "web:latest"}, nil)
	assert.ErrorContains(t, err, "create volume data-000001: a volume of that name exists already")
	assert.Equal(t, docker.world(), before)
}

// A dry run fails for what the real restore would fail for.
func TestADryRunLooksForTheContentOfVolumes(t *testing.T) {
	docker := newFakeDocker()
	service := docker.withVolumes()
	docker.create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	snapshotOf(t, docker, CreateOptions{Container: "web"})
	before := docker.world()
	dry := RestoreOptions{Snapshot: "web:latest", DryRun: true}
	_, err := docker.engine().Restore(t.Context(), dry, nil)
	assert.NilError(t, err)
	clear(service.archives)
	_, err = docker.engine().Restore(t.Context(), dry, nil)
	var problems *plan.ProblemsError
	assert.Assert(t, errors.As(err, &problems), "%v", err)
	assert.Equal(t, problems.Problems[0].Kind, plan.ProblemNoArchive)
	assert.Equal(t, docker.world(), before)
}
