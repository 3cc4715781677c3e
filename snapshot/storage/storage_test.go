package storage

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"
)

// bindVolume returns the options of a volume that is a directory of the host.
func bindVolume(device string) map[string]string {
	return map[string]string{"type": "none", "o": "bind", "device": device}
}

func TestStorageIsTheSameUnderSeveralNames(t *testing.T) {
	const engines = "/var/lib/docker/volumes/"
	s := Map{}
	for name, options := range map[string]map[string]string{
		"plain": nil, "srv": bindVolume("/srv/data"), "srv2": bindVolume("/srv/data/"), "inner": bindVolume("/srv/data/sub"), "next": bindVolume("/srv/database"),
		"nfs":      {"type": "nfs4", "o": "addr=10.0.0.1,rw", "device": ":/export"},
		"nfs2":     {"type": "nfs", "o": "rw,addr=10.0.0.1", "device": ":/export/sub"},
		"otherNFS": {"type": "nfs", "o": "addr=10.0.0.2", "device": ":/export"},
		"disk":     {"type": "ext4", "device": "/dev/sdb1"}, "disk2": {"type": "ext4", "device": "/dev/sdb1"},
		"tmp": {"type": "tmpfs", "device": "tmpfs"}, "tmp2": {"type": "tmpfs", "device": "tmpfs"},
		"inEngine": bindVolume(engines + "plain/_data"), "relative": bindVolume("srv/data"),
	} {
		s[name] = placesOf(volume.Volume{Options: options, Mountpoint: engines + name + "/_data"})
	}
	for name, want := range map[string][]string{
		"plain": {"inEngine", "plain"}, "srv": {"inner", "srv", "srv2"}, "inner": {"inner", "srv", "srv2"}, "next": {"next"},
		"nfs": {"nfs", "nfs2"}, "otherNFS": {"otherNFS"}, "disk": {"disk", "disk2"}, "tmp": {"tmp"}, "relative": {"relative"},
		"of another driver": {"of another driver"},
	} {
		assert.DeepEqual(t, s.Aliases([]string{name}), want)
	}
	for source, want := range map[string]string{
		"/srv/data": "srv", "/srv/data/sub/deep": "srv", "/srv": "srv", "/srv/dat": "", "/": "",
		engines + "plain/_data": "plain", engines + "plain/_data/sub": "plain", "/var/lib/docker": "", "/dev/sdb1": "",
	} {
		m := container.MountPoint{Type: mount.TypeBind, Source: source, RW: true}
		assert.Equal(t, s.shownBy(m, []string{"plain", "srv", "disk"}), want, source)
	}
	assert.Equal(t, s.shownBy(container.MountPoint{Type: mount.TypeVolume, Name: "srv2"}, []string{"srv"}), "srv")
	assert.Equal(t, s.shownBy(container.MountPoint{Type: mount.TypeTmpfs}, []string{""}), "")
}
