package removal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// orphanAge is the age from which on an unfinished image or container counts as abandoned.
const orphanAge = time.Hour

// Sweep frees archives in the store of new snapshots whose images were removed long ago by others,
// such as docker image prune, and removes what interrupted commands have left. It gives way to
// whoever else uses the store.
func (rm *Remover) Sweep(ctx context.Context, p plan.Progress) {
	rm.sweepAt(ctx, []archives.Service{rm.volumes}, p)
}

// SweepStores does for all stores on the engine what [Remover.Sweep] does for one.
func (rm *Remover) SweepStores(ctx context.Context, p plan.Progress) {
	stores, err := rm.archives.Stores(ctx)
	if err != nil {
		p.Warn("sweep", "only looking for archives without an image in store "+rm.volumes.Store()+": "+err.Error())
	}
	rm.sweepAt(ctx, stores, p)
}

func (rm *Remover) sweepAt(ctx context.Context, stores []archives.Service, p plan.Progress) {
	engine, err := rm.docker.Identify(ctx)
	if err != nil {
		p.Warn("sweep", "leftovers of interrupted commands were not removed: "+err.Error())
		return
	}
	var missed []string
	seen, err := rm.archives.Seen(ctx, &engine)
	var there []string
	if err == nil {
		there, err = rm.archives.VolumeNames(ctx)
	}
	for _, store := range stores {
		if err != nil || ctx.Err() != nil {
			break
		}
		var removed volumebackup.Removed
		removed, err = store.Remove(ctx, volumebackup.RemoveOptions{Seen: seen, Volumes: there, Now: true})
		missed = append(missed, removed.Missed...)
		if cerrdefs.IsConflict(err) { // the store is in use: leave it to the next sweep
			err = nil
		}
	}
	if err != nil && ctx.Err() == nil {
		p.Warn("sweep", "could not look for archives without an image: "+err.Error())
	}
	rm.tellLost(ctx, missed, p)
	rm.SweepOrphans(ctx, engine, p)
}

// tellLost warns of snapshots whose images are missed for the first time. It looks once more: one may have been about
// to get its tag, or about to be removed on purpose.
func (rm *Remover) tellLost(ctx context.Context, missed []string, p plan.Progress) {
	if len(missed) == 0 || p == nil {
		return
	}
	all, err := rm.archives.Lost(ctx, p)
	if err != nil {
		if ctx.Err() == nil {
			p.Warn("sweep", "snapshots have lost their images, but could not be listed: "+err.Error())
		}
		return
	}
	all = slices.DeleteFunc(all, func(l archives.Lost) bool { return !slices.Contains(missed, string(l.ID)) })
	if len(all) == 0 {
		return
	}
	containers := map[string]int{}
	until := all[0].Until
	for _, l := range all {
		containers[l.Container.Name]++
		if l.Until.Before(until) {
			until = l.Until
		}
	}
	var of []string
	for _, name := range slices.Sorted(maps.Keys(containers)) {
		of = append(of, fmt.Sprintf("%s (%d)", name, containers[name]))
	}
	p.Send(plan.Event{Level: plan.LevelWarning, Phase: "sweep", Topic: plan.TopicLost, Subject: string(all[0].ID), Text: fmt.Sprintf(
		"the images of snapshots were removed, by docker system prune -a perhaps: %s; what their volumes held is kept until %s",
		strings.Join(of, ", "), until.Format("2006-01-02 15:04 MST"))})
}

// SweepOrphans removes what a killed client has left and nobody will finish, once it is [orphanAge]
// old: our images without a tag, the containers through which layers are flattened, and the locks of
// runs. It also removes the images of removed snapshots that no container uses any more. It runs after a
// removal, because nobody waits for that.
func (rm *Remover) SweepOrphans(ctx context.Context, engine dockerop.Info, p plan.Progress) {
	now, err := engine.Now()
	if err == nil {
		err = errors.Join(rm.sweepScratch(ctx, now), rm.sweepRemoved(ctx), rm.sweepImages(ctx, now), rm.sweepLocks(ctx, now))
	}
	if err != nil && ctx.Err() == nil {
		p.Warn("sweep", "leftovers of interrupted commands could not be removed: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

func (rm *Remover) sweepScratch(ctx context.Context, now time.Time) error {
	scratch, err := rm.docker.ContainerList(ctx, container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("name", catalog.ScratchPrefix), filters.Arg("label", labels.KeyVersion)),
	})
	for _, c := range scratch {
		if isOld(c.Created, now) && strings.HasPrefix(dockerop.SummaryName(c), catalog.ScratchPrefix) {
			err = errors.Join(err, rm.docker.RemoveContainer(ctx, c.ID))
		}
	}
	return err
}

func (rm *Remover) sweepImages(ctx context.Context, now time.Time) error {
	untagged, err := rm.docker.ImageList(ctx, image.ListOptions{
		Filters: filters.NewArgs(filters.Arg("dangling", "true"), filters.Arg("label", labels.KeyVersion)),
	})
	for _, summary := range untagged {
		if isOld(summary.Created, now) {
			err = errors.Join(err, rm.removeOrphan(ctx, summary.ID))
		}
	}
	return err
}

// sweepRemoved frees the images of removed snapshots once the containers that used them are gone.
func (rm *Remover) sweepRemoved(ctx context.Context) error {
	images, err := rm.catalog.RemovedImages(ctx)
	if err != nil || len(images) == 0 {
		return err
	}
	users, err := rm.users(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, summary := range images {
		if len(users[summary.ID]) > 0 {
			continue
		}
		_, err := rm.docker.ImageRemove(ctx, catalog.RemovedTag(summary.ID), image.RemoveOptions{PruneChildren: true})
		if err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) { // a container uses it by now, or it is gone
			failed = errors.Join(failed, fmt.Errorf("remove image of a removed snapshot: %w", err))
		}
	}
	return failed
}

// sweepLocks removes the volumes with which killed clients had locked a name or the session of a run. They are
// empty, and others break such a lock within seconds; then it is theirs.
func (rm *Remover) sweepLocks(ctx context.Context, now time.Time) error {
	ours, err := rm.docker.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(
		filters.Arg("name", dockerop.NameLocks), filters.Arg("name", dockerop.RunLocks),
	)})
	for _, v := range ours.Volumes {
		created, unknown := time.Parse(time.RFC3339, v.CreatedAt)
		if !dockerop.IsLock(*v) || unknown != nil || !isOld(created.Unix(), now) {
			continue
		}
		if removeErr := rm.docker.VolumeRemove(ctx, v.Name, false); !cerrdefs.IsNotFound(removeErr) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}

// isOld tells whether something made at that Unix time counts as abandoned. Both times are the
// engine's.
func isOld(created int64, now time.Time) bool { return now.Sub(time.Unix(created, 0)) >= orphanAge }

func (rm *Remover) removeOrphan(ctx context.Context, id string) error {
	found, err := rm.docker.ImageInspect(ctx, id)
	if err != nil || len(found.RepoTags) > 0 || found.Config == nil {
		return err
	}
	isSession := found.Config.Labels[labels.KeySession] != "" && len(found.RootFS.Layers) == 0 // of a run, as it was once
	if !isSession && !catalog.IsCommitted(found) {
		return nil // somebody's image that was built FROM a snapshot
	}
	_, err = rm.docker.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true})
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) {
		return nil // a container uses it, or somebody else has removed it
	}
	return err
}
