package runconfig

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

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
			labels.Mount{Name: strings.Repeat("0f", 32), Anonymous: true, Driver: "local", Labels: map[string]string{LabelAnonymous: ""}},
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
			assert.DeepEqual(t, copyVolume(s, test.m, "7", LabelsHarmless).Create, test.want)
		})
	}
}

func TestCopyVolumeNamesFitTheEngine(t *testing.T) {
	long := strings.Repeat("v", 255)
	s := captured()
	for _, name := range []string{long, long[:254] + "w"} {
		s.Mounts = append(s.Mounts, labels.Mount{Type: "volume", Name: name, Destination: "/" + name, RW: true, Archive: &labels.Archive{Entries: 2}})
	}
	sp := &Spec{Host: container.HostConfig{Binds: []string{s.Mounts[0].Name + ":" + s.Mounts[0].Destination, s.Mounts[1].Name + ":" + s.Mounts[1].Destination}}}
	made, _ := sp.planVolumes(s, RestoreOptions{}, "abcdef-256")
	first := strings.Repeat("v", 238) + "-abcdef-256"
	assert.Equal(t, made[0].Create.Name, first)
	assert.Equal(t, made[1].Create.Name, first+"-2")
	assert.Assert(t, len(made[1].Create.Name) <= 255)
}

func TestCopiesOfVolumesAreLocalWhateverTheDriver(t *testing.T) {
	s := captured()
	s.Mounts = []labels.Mount{
		{Type: "volume", Name: "data", Driver: "rclone", Destination: "/data", RW: true, Archive: &labels.Archive{Entries: 2}},
		{Type: "volume", Name: strings.Repeat("0f", 32), Anonymous: true, Driver: "local", Destination: "/own", RW: true, Archive: &labels.Archive{Entries: 2}},
	}
	for choice, want := range map[CopyVolumes]string{VolumesNew: "", VolumesNone: "", VolumesShared: "rclone"} {
		sp := &Spec{Config: container.Config{Volumes: map[string]struct{}{"/own": {}}}, Host: container.HostConfig{VolumeDriver: "rclone", Binds: []string{"data:/data"}}}
		made, _ := sp.planVolumes(s, RestoreOptions{Volumes: choice}, "abc")
		assert.Equal(t, sp.Host.VolumeDriver, want, string(choice))
		if choice != VolumesShared {
			assert.Equal(t, made[0].Create.Driver, "local")
			assert.Assert(t, made[1].IsAnonymous())
		}
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
	asCaptured := func() *Spec {
		return &Spec{Host: container.HostConfig{
			Binds:  []string{"data:/bind:z", "/srv:/srv", "empty:/empty:ro", "nocopy:/relabelled:z", "lost:/lost"},
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "data", Target: "/mount", ReadOnly: true, VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: map[string]string{"a": "b"}}}},
		}}
	}
	sp := asCaptured()
	made, plan := sp.planVolumes(s, RestoreOptions{Volumes: VolumesNew}, "7")
	assert.Equal(t, plan.String(), "create volume data-7 (5 entries, 9 bytes of data)\n"+
		"create anonymous volume /declared (1 entries, 0 bytes of "+anonymous+")\n"+
		"create volume empty-7 (1 entries, 0 bytes of empty)\n"+
		"create volume nocopy-7 (1 entries, 0 bytes of nocopy)\n"+
		"create volume lost-7 (empty)\n")
	assert.Equal(t, MissingArchives(made).String(), "leave out lost (the snapshot does not hold its content; the new volume is empty)\n")
	assert.DeepEqual(t, sp.Host.Binds, []string{"data-7:/bind:z", "/srv:/srv", "empty-7:/empty:ro,nocopy", "nocopy-7:/relabelled:z,nocopy", "lost-7:/lost"})
	assert.DeepEqual(t, sp.Host.Mounts, []mount.Mount{
		{Type: mount.TypeVolume, Source: "data-7", Target: "/mount", ReadOnly: true, VolumeOptions: &mount.VolumeOptions{NoCopy: true, Subpath: "part"}},
		{Type: mount.TypeVolume, Target: "/declared"},
	})

	sp = asCaptured()
	made, plan = sp.planVolumes(s, RestoreOptions{Volumes: VolumesShared}, "7")
	assert.Equal(t, len(made)+len(plan), 0)
	assert.DeepEqual(t, sp.Host, asCaptured().Host)

	made, _ = asCaptured().planVolumes(s, RestoreOptions{Volumes: VolumesNone}, "7")
	assert.Equal(t, len(MissingArchives(made)), 5)
}

// A volume that was captured empty is mounted with nocopy at the mount point that the user wrote.
func TestMountVolumeFindsMountPointsByTheirCleanPaths(t *testing.T) {
	empty := NewVolume{Create: volume.CreateOptions{Name: "new"}, Archive: &labels.Archive{Entries: 1}}
	at := labels.Mount{Type: "volume", Name: "data", Destination: "/data", RW: true}
	for name, test := range map[string]struct{ before, want container.HostConfig }{
		"bind":           {container.HostConfig{Binds: []string{"data:/data/:z"}}, container.HostConfig{Binds: []string{"new:/data/:z,nocopy"}}},
		"anonymous bind": {container.HostConfig{Binds: []string{"/data/"}}, container.HostConfig{Binds: []string{"new:/data/:nocopy"}}},
		"mount": {
			container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "data", Target: "//data"}}},
			container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "new", Target: "//data", VolumeOptions: &mount.VolumeOptions{NoCopy: true}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sp := Spec{Host: test.before}
			sp.mountVolume(at, empty)
			assert.DeepEqual(t, sp.Host, test.want)
			assert.Assert(t, sp.Destinations()["/data"])
		})
	}
}

func TestSubpathOfAMountPointThatIsNotClean(t *testing.T) {
	c := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{HostConfig: &container.HostConfig{
		Mounts: []mount.Mount{{Type: mount.TypeVolume, Target: "/data/", VolumeOptions: &mount.VolumeOptions{Subpath: "part"}}},
	}}}
	assert.Equal(t, Subpath(c, "/data"), "part")
}

// With Z, the engine gives the files a label that only the new container may use.
func TestACopyDoesNotRelabelTheOriginalsFiles(t *testing.T) {
	for _, test := range []struct {
		binds   CopyBinds
		volumes CopyVolumes
		want    []string
	}{
		{BindsReadOnly, VolumesNew, []string{"/srv:/srv:ro", "/etc:/etc:z,ro", "data-7:/data:Z"}},
		{BindsShared, VolumesNew, []string{"/srv:/srv", "/etc:/etc:z", "data-7:/data:Z"}},
		{BindsShared, VolumesShared, []string{"/srv:/srv", "/etc:/etc:z", "data:/data"}},
		{BindsNone, VolumesNew, []string{"data-7:/data:Z"}},
	} {
		t.Run(string(test.binds)+" "+string(test.volumes), func(t *testing.T) {
			s := captured()
			s.Mounts = []labels.Mount{{Type: "volume", Name: "data", Destination: "/data", RW: true, Archive: &labels.Archive{Entries: 5}}}
			sp := Spec{Host: container.HostConfig{Binds: []string{"/srv:/srv:Z", "/etc:/etc:z", "data:/data:Z"}}}
			sp.PlanMounts(s, RestoreOptions{Binds: test.binds, Volumes: test.volumes}, "7")
			assert.DeepEqual(t, sp.Host.Binds, test.want)
		})
	}
}
