package runconfig

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// CopyVolumes says which volumes a copy gets.
type CopyVolumes string

// The choices for volumes.
const (
	VolumesNew    CopyVolumes = "new"    // new volumes with the captured content
	VolumesShared CopyVolumes = "shared" // the original's volumes, as they are now
	VolumesNone   CopyVolumes = "none"   // new, empty volumes
)

// NewVolume is a volume that a restore makes.
type NewVolume struct {
	Original    string // key of the captured volume or bind mount
	Create      volume.CreateOptions
	Archive     *labels.Archive // nil: it stays empty
	Destination string          // of an anonymous volume: where the container mounts it; else empty
}

// IsAnonymous tells whether the engine makes the volume together with the container.
func (v NewVolume) IsAnonymous() bool { return v.Destination != "" }

// planVolumes makes the configuration mount new volumes, and returns them with the steps that make
// them. suffix is what the copy's name has after the original's.
func (sp *Spec) planVolumes(s catalog.Snapshot, o RestoreOptions, suffix string) ([]NewVolume, plan.Plan) {
	if o.Volumes == VolumesShared {
		return nil, nil
	}
	if slices.ContainsFunc(s.Mounts, hasContent) {
		sp.Host.VolumeDriver = "" // an engine that has a local volume of that name refuses another driver
	}
	var made []NewVolume
	var plan plan.Plan
	at := map[string]int{} // in made, by the original's key
	for _, m := range s.Mounts {
		if !hasContent(m) {
			continue
		}
		key := m.Key()
		if _, known := at[key]; !known {
			v := copyVolume(s, m, suffix, o.CopyLabels)
			v.nameApart(made)
			if o.Volumes == VolumesNone {
				v.Archive = nil
			}
			if sp.BecomesAnonymous(m, s.Mounts) {
				v.Destination = m.Destination
			}
			at[key] = len(made)
			made = append(made, v)
			plan = append(plan, v.Step())
		}
		switch v := made[at[key]]; {
		case v.IsAnonymous():
			sp.MountAnonymous(m)
		case m.Name == "":
			sp.mountInstead(m, v)
		default:
			sp.mountVolume(m, v)
		}
	}
	return made, plan
}

// Step returns the step of a plan that makes the volume.
func (v NewVolume) Step() plan.Step {
	step := plan.Step{Op: plan.OpCreateVolume, Target: v.Create.Name, Reason: "empty"}
	if v.IsAnonymous() {
		step.Op, step.Target = plan.OpCreateAnonymous, v.Destination
	}
	if v.Archive != nil {
		step.Reason = fmt.Sprintf("%d entries, %d bytes of %s", v.Archive.Entries, v.Archive.Bytes, v.Original)
	}
	return step
}

// maxVolumeName is the longest name in bytes that the local driver takes: the name is that of a directory. suffixRoom
// is left for two dashes and the number of [NewVolume.nameApart].
const (
	maxVolumeName = 255
	suffixRoom    = 7
)

// copyVolume describes the copy of a captured volume. Of the 64 digits of an anonymous volume's
// name the copy's name has only the first 12, which docker shows.
func copyVolume(s catalog.Snapshot, m labels.Mount, suffix string, choice CopyLabels) NewVolume {
	base := m.Name
	if base == "" {
		base = volumeBase(m.Destination)
	}
	if m.Anonymous && len(base) > dockerop.ShortID {
		base = base[:dockerop.ShortID]
	}
	base = strings.ToValidUTF8(base[:min(len(base), maxVolumeName-len(suffix)-suffixRoom)], "")
	own := map[string]string{}
	maps.Copy(own, withoutActing(withoutOurs(m.Labels), choice))
	delete(own, LabelAnonymous)
	own[labels.KeyVersion] = labels.SchemaVersion
	own[labels.KeyRestoredFrom] = string(s.ID)
	create := volume.CreateOptions{Name: base + "-" + suffix, Driver: m.Driver, DriverOpts: m.Options, Labels: own}
	if pointsElsewhere(m) {
		create.Driver, create.DriverOpts = "local", nil
	}
	return NewVolume{Original: m.Key(), Create: create, Archive: m.Archive}
}

// recreateVolume describes a captured volume, so that it can be made again if it is gone.
func recreateVolume(m labels.Mount) volume.CreateOptions {
	return volume.CreateOptions{Name: m.Name, Driver: m.Driver, DriverOpts: m.Options, Labels: withoutOurs(m.Labels)}
}

// pointsElsewhere tells whether another volume with m's driver and options would be the very same
// storage (an NFS export, a directory of the host), or would lose what is restored into it before
// the container starts (a tmpfs).
func pointsElsewhere(m labels.Mount) bool {
	if m.Driver != "" && m.Driver != "local" {
		return true
	}
	return m.Options["device"] != "" || m.Options["type"] != ""
}

// MountCaptured has the engine leave a volume empty that was captured empty, and that the configuration mounts where m
// was.
func (sp *Spec) MountCaptured(m labels.Mount, v NewVolume) {
	if v.Archive != nil && v.Archive.Entries <= 1 && !v.IsAnonymous() {
		sp.mountVolume(m, v)
	}
}

// mountVolume makes the configuration mount v where m was: instead of the original's name or, if it
// had none, in addition. If the volume was captured empty, the engine is told not to fill it from
// the image.
func (sp *Spec) mountVolume(m labels.Mount, v NewVolume) {
	name, empty := v.Create.Name, v.Archive != nil && v.Archive.Entries <= 1 // the root entry
	for i := range sp.Host.Mounts {
		point := &sp.Host.Mounts[i]
		if point.Type == mount.TypeVolume && isAt(point.Target, m.Destination) {
			point.Source = name
			captured := point.VolumeOptions
			point.VolumeOptions = &mount.VolumeOptions{NoCopy: empty, Subpath: m.Subpath}
			if captured != nil && captured.NoCopy {
				point.VolumeOptions.NoCopy = true
			}
			return
		}
	}
	for i, text := range sp.Host.Binds {
		b, ok := parseBind(text)
		if !ok { // an anonymous volume
			b = bindSpec{Destination: path.Clean(text), written: text}
		}
		if !isAt(b.Destination, m.Destination) || b.IsPath() {
			continue
		}
		b.Source = name
		if empty {
			b = b.with("nocopy")
		}
		sp.Host.Binds[i] = b.String()
		return
	}
	added := bindSpec{Source: name, Destination: m.Destination}
	if !m.RW {
		added = added.with("ro")
	}
	if empty {
		added = added.with("nocopy")
	}
	sp.Host.Binds = append(sp.Host.Binds, added.String())
}

// MissingArchives returns a step for each volume whose content the snapshot does not hold.
func MissingArchives(volumes []NewVolume) plan.Plan {
	var steps plan.Plan
	for _, v := range volumes {
		if v.Archive == nil {
			steps = append(steps, plan.Step{Op: plan.OpLeaveOut, Target: v.Original, Reason: "the snapshot does not hold its content; the new volume is empty"})
		}
	}
	return slices.Clip(steps)
}

// CheckVolumeName returns an error if name cannot be the name of a volume.
func CheckVolumeName(name string) error {
	if !labels.IsContainerName(name) { // the engine has one grammar for both
		return fmt.Errorf("invalid volume name %q: use letters, digits, '_', '.' and '-'", name)
	}
	return nil
}

// Trial returns the configuration of a container that is only created. It has no labels, so no other program acts on it.
func (sp *Spec) Trial(gone []string) *Spec {
	trial := *sp
	trial.Host, trial.Config.Labels = *sp.StandIn(gone), nil
	return &trial
}

// StandIn returns the host configuration of a container that is only captured. Every volume is told not
// to be filled from the image, so that an empty one stays empty until then. The configuration shares
// nothing with the containers in gone.
func (sp *Spec) StandIn(gone []string) *container.HostConfig {
	alone := *sp
	alone.Host.Links = slices.Clone(sp.Host.Links)
	for _, word := range gone {
		alone.dropPeer(word)
	}
	host := alone.Host
	host.Binds = slices.Clone(host.Binds)
	for i, text := range host.Binds {
		if b, ok := parseBind(text); ok && !b.IsPath() {
			host.Binds[i] = b.with("nocopy").String()
		}
	}
	host.Mounts = slices.Clone(host.Mounts)
	for i := range host.Mounts {
		m := &host.Mounts[i]
		if m.Type != mount.TypeVolume {
			continue
		}
		var options mount.VolumeOptions
		if m.VolumeOptions != nil {
			options = *m.VolumeOptions
		}
		options.NoCopy = true
		m.VolumeOptions = &options
	}
	return &host
}
