package diff

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// What is worth a walk: a smaller root filesystem is exported before the container of a worker has started.
const (
	worthEntries = 5000
	worthBytes   = 64 << 20
)

// isWorthAWalk tells whether there is so much in a root filesystem that it is better walked than exported.
func isWorthAWalk(known volumebackup.KnownImage) bool {
	return known.Entries >= worthEntries || known.Bytes >= worthBytes
}

// walkable is a container whose root filesystem can be walked.
type walkable struct {
	container, image string
	created, started time.Time
	everEnded        bool            // it ran before it was started last
	mounts           map[string]bool // where the engine mounts something in it
}

// ofEveryContainer is where an engine mounts filesystems of the kernel.
var ofEveryContainer = []string{"dev", "proc", "sys"}

// walkableOf returns nil if the root filesystem of a container has to be exported: it does not run, its PID namespace is
// that of others, or it could mount something over files that it has changed.
func walkableOf(c container.InspectResponse) *walkable {
	state, host := c.State, c.HostConfig
	if state == nil || host == nil || !state.Running || state.Paused || state.Restarting ||
		host.PidMode != "" && host.PidMode != "private" || host.Privileged || mayMount(host.CapAdd) {
		return nil
	}
	w := &walkable{
		container: c.ID, image: c.Image, created: dockerop.TimeOf(c.Created), started: dockerop.TimeOf(state.StartedAt),
		everEnded: !dockerop.TimeOf(state.FinishedAt).IsZero(), mounts: map[string]bool{},
	}
	places := slices.Concat(ofEveryContainer, slices.Collect(maps.Keys(host.Tmpfs)))
	for _, m := range c.Mounts {
		places = append(places, m.Destination)
	}
	for _, m := range host.Mounts {
		places = append(places, m.Target)
	}
	for _, place := range places {
		w.mounts[strings.TrimPrefix(path.Clean("/"+place), "/")] = true
	}
	return w
}

// mayMount tells whether a container with these capabilities besides the usual ones can mount something.
func mayMount(added []string) bool {
	return slices.ContainsFunc(added, func(capability string) bool {
		name := strings.TrimPrefix(strings.ToUpper(capability), "CAP_")
		return name == "ALL" || name == "SYS_ADMIN"
	})
}

// hidesWhatIn tells whether what lies beneath the mounts of the container is what a snapshot has there. Nobody writes there
// while the container runs; so it has to be the container that was captured, since it was started, or one that was made
// of the snapshot.
func (w *walkable) hidesWhatIn(old content) bool {
	if old.container == w.container {
		return !w.everEnded || !old.taken.Before(w.started)
	}
	return slices.Contains(old.images, w.image) && !w.everEnded
}

// walk tells the comparer what the root filesystem of a container holds, by walking it in a worker. It returns false if
// it has to be exported instead, for whatever reason. The list of a walk is kept for the next one, over any container of
// the same image: what was not changed since a container was made is the image's.
func (d *Differ) walk(ctx context.Context, stored archives.Service, w archives.Comparer, p *part, progress plan.Progress) (bool, error) {
	c := p.now.walk
	if c == nil || !c.hidesWhatIn(p.old) {
		return false, nil
	}
	known, err := w.Known(ctx, []string{p.old.image})
	if err != nil || len(known) == 0 || !isWorthAWalk(known[0]) {
		return false, err
	}
	key := imageKey([]string{"walked", c.image})
	recalled, err := w.Recall(ctx, key)
	if err != nil {
		return false, err
	}
	progress.Status("read rootfs", "reading the root filesystem of "+p.now.name)
	walked, err := stored.WalkRoot(ctx, volumebackup.WalkOptions{Container: c.container, Created: c.created.Unix(), Known: recalled}, archives.Progress(progress))
	if err == nil {
		err = c.check(walked.Mounts)
	}
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		progress.Status("read rootfs", fmt.Sprintf("exporting the root filesystem of %s: %v", p.now.name, err))
		return false, nil
	}
	progress.Status("read rootfs", fmt.Sprintf("%d of %d files of %s had to be read", walked.Read, walked.Files, p.now.name))
	o := volumebackup.LearnOptions{Image: p.now.image}
	if walked.Read > 0 {
		o.Walked = key
	}
	p.now.hidden = walked.Mounts
	return true, w.Learn(ctx, o, func(out io.Writer) error {
		_, err := io.Copy(out, bytes.NewReader(walked.List))
		return err
	})
}

// check fails if something is mounted in the container that the engine has not mounted: nobody knows what is beneath.
func (w *walkable) check(mounts []string) error {
	for _, place := range mounts {
		if !w.mounts[place] {
			return fmt.Errorf("something is mounted at /%s", place)
		}
	}
	return nil
}
