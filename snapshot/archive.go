package snapshot

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
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// VolumeChoice says which volumes are captured. The zero value takes all.
type VolumeChoice struct {
	None    bool
	Only    []string // volume names
	Exclude []string // volume names
}

// leftOut says why a volume is not captured, or nothing.
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

// chooseVolumes numbers the volumes to archive: one number for a volume, however
// often it is mounted. Those that are left out get the reason why.
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

// recordArchives notes at every mount where its content is.
func recordArchives(mounts []labels.Mount, archives []volumebackup.Archive) {
	for i := range mounts {
		m := &mounts[i]
		at := slices.IndexFunc(archives, func(a volumebackup.Archive) bool { return a.Volume == m.Name })
		if m.Type != string(mount.TypeVolume) || m.Skipped != "" || at < 0 {
			continue
		}
		a := archives[at]
		m.Archive = &labels.Archive{Root: a.Root, Entries: a.Entries, Bytes: a.Bytes, Stored: a.Stored, Index: a.Number}
	}
}

// archiving is a snapshot of a container with volumes, on its way.
type archiving struct {
	occasion
	engine *Engine
	from   source
	record *labels.Record
	p      Progress
	lost   bool // something that should be in it could not be kept
	frozen time.Duration
	refs   []string       // that the image has from the start
	ending errgroup.Group // the worker goes while the image is tagged
}

// errJoined means that somebody began to write to the volumes after it had been
// found out who does.
var errJoined = errors.New("another container began to use the volumes")

// runAttempts is how often the volumes are read again because of that.
const runAttempts = 4

// run archives the volumes and commits the container, both as they were at one
// moment. It returns the image's ID; on an error nothing is left in the store.
func (a *archiving) run(ctx context.Context, volumes []volumebackup.Volume, pause Pause, options container.CommitOptions, u *undo) (string, error) {
	r := reading{archiving: a, volumes: volumes, pause: pause, options: options}
	for attempt := 1; ; attempt++ {
		r.last = attempt == runAttempts || a.begin != nil
		imageID, err := r.run(ctx, u)
		if !errors.Is(err, errJoined) {
			return imageID, err
		}
		a.p.status("volumes", errJoined.Error()+": reading them again")
	}
}

// reading is one attempt to archive volumes.
type reading struct {
	*archiving
	volumes []volumebackup.Volume
	pause   Pause
	options container.CommitOptions
	last    bool // who joins now is not waited for
	backup  VolumeBackup
}

func (r *reading) names() []string {
	names := make([]string, len(r.volumes))
	for i, v := range r.volumes {
		names[i] = v.Name
	}
	return names
}

// look finds out who can write now.
func (r *reading) look(ctx context.Context) (writers, error) {
	return r.engine.writers(ctx, r.from, r.names(), r.pause)
}

// run reads everything while the writers run, then what changed since while they
// are frozen. Nothing durable is waited for until they run again.
func (r *reading) run(ctx context.Context, u *undo) (imageID string, err error) {
	before, err := r.look(ctx)
	if err != nil {
		return "", err
	}
	r.p.status("volumes", "reading volumes")
	begin := r.begin
	if begin == nil {
		begin = r.engine.volumes.Begin
	}
	r.backup, err = begin(ctx, volumebackup.BackupOptions{
		Container: r.from.container.ID, Snapshot: string(r.id), Freezes: before.running, Volumes: r.volumes,
	}, volumeEvents(r.p))
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = r.backup.Close() // the error says more
			return
		}
		r.ending.Go(r.backup.Close)
	}()
	if r.begin == nil { // or the operation has looked that this is a part of
		if err := r.engine.checkUnmoved(ctx, r.from.container, r.names(), r.p); err != nil {
			return "", err
		}
	}
	if !before.idle {
		if _, err := r.backup.Pass(ctx, volumebackup.Live); err != nil {
			return "", err
		}
	}
	now, err := r.look(ctx) // reading may have taken minutes
	if err != nil {
		return "", err
	}
	if now.joined(before) && !r.last { // whoever is frozen has to be in the journal
		return "", errJoined
	}
	return r.finish(ctx, now, u)
}

// finish reads what is left and stores it all.
func (r *reading) finish(ctx context.Context, who writers, u *undo) (string, error) {
	stored := false // perhaps: without an answer the worker may still have got there
	u.add(func(ctx context.Context) error {
		if !stored {
			return nil
		}
		_, err := r.engine.volumes.Remove(ctx, volumebackup.RemoveOptions{Snapshot: string(r.id)})
		return err
	})
	made, err := r.readFrozen(ctx, who)
	if made != "" {
		u.add(func(ctx context.Context) error { return r.engine.removeImage(ctx, made) })
	}
	if err != nil {
		return "", err
	}
	made, err = r.limitLayers(ctx, made, u) // before there are archives that have no image
	if err != nil {
		return "", err
	}
	r.p.status("store", "writing to the store")
	stored = true
	archives, err := r.backup.Publish(ctx)
	for _, archive := range archives {
		r.lost = r.lost || archive.Skipped > 0
	}
	if err != nil {
		return "", err
	}
	return made, nil
}

// readFrozen is the part that ends with the image committed and all thawed.
func (r *reading) readFrozen(ctx context.Context, who writers) (imageID string, err error) {
	mode := volumebackup.Frozen
	if who.idle || r.settle != nil {
		mode = volumebackup.Idle
	}
	resume, err := r.standStill(ctx, who.running)
	defer func() {
		if resumeErr := resume(ctx); err == nil {
			err = resumeErr
		}
	}()
	if err != nil {
		return "", err
	}
	archives, err := r.backup.Pass(ctx, mode)
	if err != nil {
		return "", err
	}
	if len(archives) != len(r.volumes) {
		return "", fmt.Errorf("the worker archived %d of %d volumes", len(archives), len(r.volumes))
	}
	if err := r.checkAlone(ctx, who); err != nil {
		return "", err
	}
	recordArchives(r.record.Mounts, archives)
	own, err := labels.Encode(*r.record)
	if err != nil {
		return "", fmt.Errorf("describe container %s: %w", r.record.Container.Name, err)
	}
	r.options.Config = commitConfig(r.from, own)
	return r.engine.commit(ctx, r.from.container.ID, r.options)
}

// checkAlone looks whether somebody who is not frozen began to write while the
// last pass was reading.
func (r *reading) checkAlone(ctx context.Context, who writers) error {
	now, err := r.look(ctx)
	if err != nil || !now.joined(who) {
		return err
	}
	if !r.last {
		return errJoined
	}
	r.lost = true
	r.p.warn("volumes", errJoined.Error()+" while they were read: what is captured may be torn")
	return nil
}

// standStill makes sure that nobody writes, until resume is called; that must be
// done also after an error.
func (a *archiving) standStill(ctx context.Context, running []string) (resume func(context.Context) error, err error) {
	if a.settle != nil {
		return func(context.Context) error { return nil }, a.settle(ctx)
	}
	what := "the container"
	if len(running) > 1 {
		what = fmt.Sprintf("%d containers", len(running))
	}
	a.p.status("freeze", "freezing "+what)
	frozen, err := a.engine.freeze(ctx, running)
	return func(ctx context.Context) error {
		err := frozen.thaw(ctx)
		a.frozen = frozen.lasted
		return err
	}, err
}

// maxWarnings is how many entries that could not be kept exactly are named.
const maxWarnings = 20

// volumeEvents passes on what a worker tells.
func volumeEvents(p Progress) volumebackup.Progress {
	warned := 0
	return func(e protocol.Event) {
		switch {
		case p == nil:
		case e.Progress != nil:
			p(Event{Phase: "volumes", Text: e.Progress.Phase, Current: e.Progress.Bytes, Total: e.Progress.Total, Files: e.Progress.Files})
		case e.Warning != nil:
			warned++
			switch {
			case warned <= maxWarnings:
				p.warn("volumes", describeWarning(*e.Warning))
			case warned == maxWarnings+1:
				p.warn("volumes", "there are more of these")
			}
		}
	}
}

func describeWarning(w protocol.Warning) string {
	if w.Path == "" {
		return fmt.Sprintf("volume %s: %s", w.Volume, w.Message)
	}
	return fmt.Sprintf("volume %s: %s: %s", w.Volume, w.Path, w.Message)
}
