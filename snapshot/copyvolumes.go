package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// CopyVolumes says what a restored copy gets for volumes.
type CopyVolumes string

// The choices.
const (
	VolumesNew    CopyVolumes = "new"    // new volumes with the captured content
	VolumesShared CopyVolumes = "shared" // the original's volumes, as they are now
	VolumesNone   CopyVolumes = "none"   // new, empty volumes
)

// newVolume is a volume that a restore will make.
type newVolume struct {
	original    string
	create      volume.CreateOptions
	archive     *labels.Archive // nil: it stays empty
	destination string          // where the container mounts it, if it is anonymous: the engine makes it with the container
}

// target is how a worker restores the content of v into a volume of that name. What the
// content needs is added to the worker's rights.
func (v newVolume) target(name string, needs *volumebackup.Fill) volumebackup.Target {
	needs.Devices = needs.Devices || v.archive.Devices
	needs.Trusted = needs.Trusted || v.archive.Trusted
	return volumebackup.Target{Archive: v.archive.Index, Root: v.archive.Root, Volume: name, Origin: v.original}
}

// isAnonymous tells whether the engine makes the volume together with the container.
func (v newVolume) isAnonymous() bool { return v.destination != "" }

// planVolumes points the configuration at new volumes, and returns them. suffix
// is what the copy's name has after the original's.
func (sp *spec) planVolumes(s catalog.Snapshot, choice CopyVolumes, suffix string) ([]newVolume, plan.Plan) {
	if choice == VolumesShared {
		return nil, nil
	}
	var made []newVolume
	var plan plan.Plan
	at := map[string]int{} // in made, by the original's name
	for _, m := range s.Mounts {
		if m.Type != string(mount.TypeVolume) || m.Name == "" {
			continue
		}
		if _, known := at[m.Name]; !known {
			v := copyVolume(s, m, suffix)
			if choice == VolumesNone {
				v.archive = nil
			}
			if sp.becomesAnonymous(m, s.Mounts) {
				v.destination = m.Destination
			}
			at[m.Name] = len(made)
			made = append(made, v)
			plan = append(plan, v.step())
		}
		if made[at[m.Name]].isAnonymous() {
			sp.mountAnonymous(m)
			continue
		}
		sp.mountVolume(m, made[at[m.Name]])
	}
	return made, plan
}

func (v newVolume) step() plan.Step {
	step := plan.Step{Op: plan.OpCreateVolume, Target: v.create.Name, Reason: "empty"}
	if v.isAnonymous() {
		step.Op, step.Target = plan.OpCreateAnonymous, v.destination
	}
	if v.archive != nil {
		step.Reason = fmt.Sprintf("%d entries, %d bytes of %s", v.archive.Entries, v.archive.Bytes, v.original)
	}
	return step
}

// copyVolume describes the copy of a captured volume. An anonymous one gets the
// beginning of its name: 64 digits tell nobody more.
func copyVolume(s catalog.Snapshot, m labels.Mount, suffix string) newVolume {
	base := m.Name
	if m.Anonymous && len(base) > dockerop.ShortID {
		base = base[:dockerop.ShortID]
	}
	own := map[string]string{}
	for key, value := range withoutOurs(m.Labels) {
		if !strings.HasPrefix(key, catalog.ComposePrefix) && key != labelAnonymous {
			own[key] = value
		}
	}
	own[labels.KeyVersion] = labels.SchemaVersion
	own[labels.KeyRestoredFrom] = string(s.ID)
	create := volume.CreateOptions{Name: base + "-" + suffix, Driver: m.Driver, DriverOpts: m.Options, Labels: own}
	if pointsElsewhere(m) {
		create.Driver, create.DriverOpts = "local", nil
	}
	return newVolume{original: m.Name, create: create, archive: m.Archive}
}

// recreateVolume describes a captured volume itself, in case it is gone.
func recreateVolume(m labels.Mount) volume.CreateOptions {
	return volume.CreateOptions{Name: m.Name, Driver: m.Driver, DriverOpts: m.Options, Labels: withoutOurs(m.Labels)}
}

// pointsElsewhere tells whether a volume with the same driver and options would
// be the very same storage (an NFS export, a host directory), or would not keep
// what is restored into it before the container starts (a tmpfs).
func pointsElsewhere(m labels.Mount) bool {
	if m.Driver != "" && m.Driver != "local" {
		return true
	}
	return m.Options["device"] != "" || m.Options["type"] != ""
}

// mountVolume makes the configuration mount v where m was: in place of the
// original's name, or in addition if it had none. A volume that was captured
// empty stays so: the engine would fill it from the image.
func (sp *spec) mountVolume(m labels.Mount, v newVolume) {
	name, empty := v.create.Name, v.archive != nil && v.archive.Entries <= 1 // the root entry
	for i := range sp.host.Mounts {
		point := &sp.host.Mounts[i]
		if point.Type == mount.TypeVolume && point.Target == m.Destination {
			point.Source = name
			captured := point.VolumeOptions
			point.VolumeOptions = &mount.VolumeOptions{NoCopy: empty, Subpath: m.Subpath}
			if captured != nil && captured.NoCopy {
				point.VolumeOptions.NoCopy = true
			}
			return
		}
	}
	for i, text := range sp.host.Binds {
		b, ok := parseBind(text)
		if !ok || b.destination != m.Destination || b.isPath() {
			continue
		}
		b.source = name
		if empty {
			b = b.with("nocopy")
		}
		sp.host.Binds[i] = b.String()
		return
	}
	added := bindSpec{source: name, destination: m.Destination}
	if !m.RW {
		added = added.with("ro")
	}
	if empty {
		added = added.with("nocopy")
	}
	sp.host.Binds = append(sp.host.Binds, added.String())
}

// filled are volumes in which something was restored.
type filled struct {
	worker archives.Worker
	lost   bool // something could not be brought back
}

// isIncomplete tells whether something could not be brought back. Nil had nothing to bring.
func (f *filled) isIncomplete() bool { return f != nil && f.lost }

// finish lets go of the volumes. If the copy that mounts them is whole, they are not for
// others to clear away from then on. What fails is a warning: the copy is there all the same.
func (f *filled) finish(ctx context.Context, isWhole bool, p plan.Progress) {
	if f == nil {
		return
	}
	if isWhole {
		if err := f.worker.Release(context.WithoutCancel(ctx)); err != nil {
			p.Warn("create", err.Error())
		}
	}
	if err := f.close(); err != nil {
		p.Warn("remove", err.Error())
	}
}

// close lets go of the volumes. Nil had none.
func (f *filled) close() error {
	if f == nil {
		return nil
	}
	return f.worker.Close()
}

// makeVolumes has a worker make the named volumes, and fills those that have an archive.
// The engine makes them together with the worker, whose label names them: at no
// time there are any that nobody knows of. What it returns, also with an error,
// must be closed.
func (e *Engine) makeVolumes(ctx context.Context, r restore, u *dockerop.Undo, p plan.Progress) (*filled, error) {
	named := r.named()
	if len(named) == 0 {
		return nil, nil
	}
	if e.volumes == nil {
		return nil, errors.New("nothing here can restore volumes")
	}
	p.Status("volumes", "creating volumes")
	o := volumebackup.RestoreOptions{Purpose: "restore " + string(r.id), Fill: &volumebackup.Fill{}}
	var targets []volumebackup.Target
	for _, v := range named {
		o.Volumes, o.Make = append(o.Volumes, v.create.Name), append(o.Make, v.create)
		if v.archive != nil {
			targets = append(targets, v.target(v.create.Name, o.Fill))
		}
		u.Add(func(ctx context.Context) error { return e.removeOwnVolume(ctx, v.create.Name, r.operation) })
	}
	o.Idle = len(targets) == 0
	var err error
	if o.Journal, err = (pending.HalfMade{Operation: r.operation, Volumes: o.Volumes}).Labels(); err != nil {
		return nil, err
	}
	worker, err := e.volumes.OpenRestore(ctx, o, archives.Progress(p))
	if err != nil {
		return nil, err
	}
	if err := e.checkOwnVolumes(ctx, o.Volumes, r.operation); err != nil {
		return &filled{worker: worker}, err
	}
	p.Status("volumes", "restoring volumes")
	results, err := worker.Apply(ctx, string(r.id), targets)
	return &filled{worker: worker, lost: anySkipped(results)}, err
}

// fillVolumes restores volumes that nobody else knows of yet, or that nobody uses, in
// a worker of which some options are given. What it returns, also with an error,
// must be closed.
func (e *Engine) fillVolumes(ctx context.Context, id labels.ID, targets []volumebackup.Target, o volumebackup.RestoreOptions, p plan.Progress) (*filled, error) {
	p.Status("volumes", "restoring volumes")
	o.Purpose, o.Volumes = "restore "+string(id), volumeNames(targets)
	worker, err := e.volumes.OpenRestore(ctx, o, archives.Progress(p))
	if err != nil {
		return nil, err
	}
	results, err := worker.Apply(ctx, string(id), targets)
	return &filled{worker: worker, lost: anySkipped(results)}, err
}

func volumeNames(targets []volumebackup.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Volume
	}
	return names
}

// anySkipped tells whether the engine's kernel did not allow something.
func anySkipped(results []volumebackup.RestoreResult) bool {
	return slices.ContainsFunc(results, func(r volumebackup.RestoreResult) bool { return r.Skipped > 0 })
}

// missingArchives are captured volumes whose content is not in the snapshot.
func missingArchives(volumes []newVolume) plan.Plan {
	var steps plan.Plan
	for _, v := range volumes {
		if v.archive == nil {
			steps = append(steps, plan.Step{Op: plan.OpLeaveOut, Target: v.original, Reason: "the snapshot does not hold its content; the new volume is empty"})
		}
	}
	return slices.Clip(steps)
}
