package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// VolumeChoice says which volumes are captured. The zero value takes all.
type VolumeChoice struct {
	None    bool
	Only    []string // volume names
	Exclude []string // volume names
}

// leftOut returns why a volume is not captured; empty if it is.
func (c VolumeChoice) leftOut(name string) string {
	switch {
	case c.None:
		return "left out on request: no volumes"
	case slices.Contains(c.Exclude, name), len(c.Only) > 0 && !slices.Contains(c.Only, name):
		return "left out on request"
	}
	return ""
}

// check refuses names that the container does not mount.
func (c VolumeChoice) check(mounts []labels.Mount) error {
	for _, name := range slices.Concat(c.Only, c.Exclude) {
		mounted := slices.ContainsFunc(mounts, func(m labels.Mount) bool { return m.Name == name && m.Type == string(mount.TypeVolume) })
		if !mounted {
			return fmt.Errorf("the container mounts no volume %s", name)
		}
	}
	return nil
}

// chooseVolumes numbers the volumes and bind mounts to archive, each once, however often it is mounted. Volumes that
// are left out get the reason. Whatever else has no content to archive has its reason already.
func chooseVolumes(mounts []labels.Mount, choice VolumeChoice) []volumebackup.Volume {
	var chosen []volumebackup.Volume
	for i := range mounts {
		m := &mounts[i]
		key := m.Key()
		if key == "" || m.Skipped != "" {
			continue
		}
		if m.Type == string(mount.TypeVolume) {
			m.Skipped = choice.leftOut(m.Name)
		}
		if m.Skipped != "" {
			continue
		}
		known := slices.ContainsFunc(chosen, func(v volumebackup.Volume) bool { return v.Key == key })
		if !known {
			chosen = append(chosen, volumebackup.Volume{Number: len(chosen), Key: key})
		}
	}
	return chosen
}

// recordArchives records for every mount where its content is.
func recordArchives(mounts []labels.Mount, archives []volumebackup.Archive) {
	for i := range mounts {
		m := &mounts[i]
		at := slices.IndexFunc(archives, func(a volumebackup.Archive) bool { return a.Key == m.Key() })
		if m.Skipped != "" || at < 0 {
			continue
		}
		a := archives[at]
		m.Archive = &labels.Archive{Root: a.Root, Entries: a.Entries, Bytes: a.Bytes, Stored: a.Stored, Index: a.Number, Devices: a.Devices, Trusted: a.Trusted}
	}
}

// errJoined means that another container began to write after the writers were found.
var errJoined = errors.New("another container began to use the volumes")

// runAttempts is how often the volumes are read because of that.
const runAttempts = 4

// run archives the volumes and commits the containers, all as they were at one
// moment. On an error nothing is left in the store.
func (a *taking) run(ctx context.Context, u *dockerop.Rollback) error {
	r := attempt{taking: a}
	for n := 1; ; n++ {
		r.last = n == runAttempts || a.Begin != nil
		err := r.run(ctx, u)
		if !errors.Is(err, errJoined) {
			return err
		}
		a.p.Status("volumes", errJoined.Error()+": reading them again")
	}
}
