package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
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

// chooseVolumes numbers the volumes to archive, each once, however often it is mounted. Mounts that
// are left out get the reason.
func chooseVolumes(mounts []labels.Mount, choice VolumeChoice) []volumebackup.Volume {
	var chosen []volumebackup.Volume
	for i := range mounts {
		m := &mounts[i]
		if m.Type != string(mount.TypeVolume) || m.Skipped != "" {
			continue
		}
		if m.Skipped = choice.leftOut(m.Name); m.Skipped != "" {
			continue
		}
		known := slices.ContainsFunc(chosen, func(v volumebackup.Volume) bool { return v.Name == m.Name })
		if !known {
			chosen = append(chosen, volumebackup.Volume{Number: len(chosen), Name: m.Name})
		}
	}
	return chosen
}

// recordArchives records for every mount where its content is.
func recordArchives(mounts []labels.Mount, archives []volumebackup.Archive) {
	for i := range mounts {
		m := &mounts[i]
		at := slices.IndexFunc(archives, func(a volumebackup.Archive) bool { return a.Volume == m.Name })
		if m.Type != string(mount.TypeVolume) || m.Skipped != "" || at < 0 {
			continue
		}
		a := archives[at]
		m.Archive = &labels.Archive{Root: a.Root, Entries: a.Entries, Bytes: a.Bytes, Stored: a.Stored, Index: a.Number, Devices: a.Devices, Trusted: a.Trusted}
	}
}

// taking is a snapshot that is being taken.
type taking struct {
	Request
	engine   *Capturer
	from     Source
	record   *labels.Record
	p        plan.Progress
	lost     bool           // something that should be in it could not be kept
	sweepDue bool           // as in [Created]
	frozen   time.Duration  // in all attempts together
	refs     []string       // that the image has from the start
	ending   errgroup.Group // the worker goes while the image is tagged
}

// errJoined means that another container began to write after the writers were found.
var errJoined = errors.New("another container began to use the volumes")

// runAttempts is how often the volumes are read because of that.
const runAttempts = 4

// run archives the volumes and commits the container, both as they were at one
// moment. It returns the image's ID; on an error nothing is left in the store.
func (a *taking) run(ctx context.Context, volumes []volumebackup.Volume, pause Pause, options container.CommitOptions, u *dockerop.Rollback) (string, error) {
	r := volumeCapture{taking: a, volumes: volumes, pause: pause, options: options}
	for attempt := 1; ; attempt++ {
		r.last = attempt == runAttempts || a.Begin != nil
		imageID, err := r.run(ctx, u)
		if !errors.Is(err, errJoined) {
			return imageID, err
		}
		a.p.Status("volumes", errJoined.Error()+": reading them again")
	}
}
