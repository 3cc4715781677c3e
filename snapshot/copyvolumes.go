package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
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
	original string
	create   volume.CreateOptions
	archive  *labels.Archive // nil: it stays empty
}

// planVolumes points the configuration at new volumes, and returns them. suffix
// is what the copy's name has after the original's.
func (sp *spec) planVolumes(s Snapshot, choice CopyVolumes, suffix string) ([]newVolume, Plan) {
	if choice == VolumesShared {
		return nil, nil
	}
	var made []newVolume
	var plan Plan
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
			at[m.Name] = len(made)
			made = append(made, v)
			plan = append(plan, v.step())
		}
		sp.mountVolume(m, made[at[m.Name]])
	}
	return made, plan
}

func (v newVolume) step() Step {
	step := Step{Op: OpCreateVolume, Target: v.create.Name, Reason: "empty"}
	if v.archive != nil {
		step.Reason = fmt.Sprintf("%d entries, %d bytes of %s", v.archive.Entries, v.archive.Bytes, v.original)
	}
	return step
}

// copyVolume describes the copy of a captured volume. An anonymous one gets the
// beginning of its name: 64 digits tell nobody more.
func copyVolume(s Snapshot, m labels.Mount, suffix string) newVolume {
	base := m.Name
	if m.Anonymous && len(base) > shortID {
		base = base[:shortID]
	}
	own := map[string]string{}
	for key, value := range withoutOurs(m.Labels) {
		if !strings.HasPrefix(key, composePrefix) && key != labelAnonymous {
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

// labelMade stands on the worker that fills volumes which were made for a copy: a
// JSON list of their names. The worker lives until the copy mounts them. One that
// is dead says that the copy was never finished.
const labelMade = labels.Prefix + "worker.made"

// filled are volumes in which something was restored.
type filled struct {
	worker VolumeWorker
	lost   bool // something could not be brought back
}

// release says that the volumes have their container: from then on they are not
// for others to clear away. Nil had none.
func (f *filled) release(ctx context.Context) error {
	if f == nil {
		return nil
	}
	return f.worker.Release(ctx)
}

// close lets go of the volumes. Nil had none.
func (f *filled) close() error {
	if f == nil {
		return nil
	}
	return f.worker.Close()
}

// makeVolumes creates the volumes and fills those that have an archive. What it
// returns, also with an error, must be closed.
func (e *Engine) makeVolumes(ctx context.Context, r restore, u *undo, p Progress) (*filled, error) {
	var targets []volumebackup.Target
	var fill volumebackup.Fill
	for _, v := range r.volumes {
		p.status("volumes", "creating volume "+v.create.Name)
		if err := e.createVolume(ctx, v.create, u); err != nil {
			return nil, err
		}
		if v.archive != nil {
			targets = append(targets, volumebackup.Target{Archive: v.archive.Index, Root: v.archive.Root, Volume: v.create.Name, Origin: v.original})
			fill.Devices = fill.Devices || v.archive.Devices
			fill.Trusted = fill.Trusted || v.archive.Trusted
		}
	}
	if len(targets) == 0 {
		return nil, nil
	}
	if e.volumes == nil {
		return nil, errors.New("nothing here can restore volumes")
	}
	made, err := json.Marshal(volumeNames(targets))
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	return e.fillVolumes(ctx, r.id, targets, volumebackup.RestoreOptions{
		Journal: map[string]string{labelMade: string(made)}, Fill: &fill,
	}, p)
}

// fillVolumes restores volumes that nobody else knows of yet, or that nobody uses, in
// a worker of which some options are given. What it returns, also with an error,
// must be closed.
func (e *Engine) fillVolumes(ctx context.Context, id labels.ID, targets []volumebackup.Target, o volumebackup.RestoreOptions, p Progress) (*filled, error) {
	p.status("volumes", "restoring volumes")
	o.Purpose, o.Volumes = "restore "+string(id), volumeNames(targets)
	worker, err := e.volumes.OpenRestore(ctx, o, volumeEvents(p))
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

// removeMade removes the volumes that a dead worker was filling, unless somebody
// mounts them.
func (e *Engine) removeMade(ctx context.Context, worker container.Summary) error {
	text, ok := worker.Labels[labelMade]
	if !ok || volumebackup.IsSettled(summaryName(worker)) {
		return nil
	}
	var made []string
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		return fmt.Errorf("read journal %q: %w", text, err)
	}
	var failed error
	for _, name := range made {
		err := e.docker.VolumeRemove(ctx, name, false)
		if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
			failed = errors.Join(failed, fmt.Errorf("remove volume %s: %w", name, err))
		}
	}
	return failed
}

// anySkipped tells whether the engine's kernel did not allow something.
func anySkipped(results []volumebackup.RestoreResult) bool {
	return slices.ContainsFunc(results, func(r volumebackup.RestoreResult) bool { return r.Skipped > 0 })
}

// createVolume makes a volume that must not exist yet: the engine's create call
// would hand out the one that does.
func (e *Engine) createVolume(ctx context.Context, o volume.CreateOptions, u *undo) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	v, err := e.docker.VolumeCreate(context.WithoutCancel(ctx), o)
	if err != nil {
		u.add(func(ctx context.Context) error { return e.removeUnansweredVolume(ctx, o) })
		return fmt.Errorf("create volume %s: %w", o.Name, err)
	}
	if !maps.Equal(v.Labels, o.Labels) {
		return fmt.Errorf("create volume %s: a volume of that name exists already", o.Name)
	}
	u.add(func(ctx context.Context) error { return e.docker.VolumeRemove(ctx, o.Name, true) })
	return nil
}

// removeUnansweredVolume removes what a create call has made although it failed:
// the connection may break before the answer comes. Our labels say that it is ours.
func (e *Engine) removeUnansweredVolume(ctx context.Context, o volume.CreateOptions) error {
	v, err := e.docker.VolumeInspect(ctx, o.Name)
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	if err != nil || !maps.Equal(v.Labels, o.Labels) || v.Labels[labels.KeyRestoredFrom] == "" {
		return err
	}
	return e.docker.VolumeRemove(ctx, o.Name, true)
}

// missingArchives are captured volumes whose content is not in the snapshot.
func missingArchives(volumes []newVolume) Plan {
	var steps Plan
	for _, v := range volumes {
		if v.archive == nil {
			steps = append(steps, Step{Op: OpLeaveOut, Target: v.original, Reason: "the snapshot does not hold its content; the new volume is empty"})
		}
	}
	return slices.Clip(steps)
}
