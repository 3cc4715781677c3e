package snapshot

import (
	"context"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/workerimage"
)

// Resolve finds the snapshot that word means: container:name, container:latest,
// container:ID, container@age, a container, which means its latest, a full ID, a
// unique prefix of one, or a name that is unique on the engine.
func (e *Engine) Resolve(ctx context.Context, word string) (catalog.Snapshot, error) {
	return e.catalog.Resolve(ctx, word)
}

// TakenWith returns the snapshots of other containers that were taken at the same moment as s, in its group.
func (e *Engine) TakenWith(ctx context.Context, s catalog.Snapshot) ([]catalog.Snapshot, error) {
	return e.catalog.TakenWith(ctx, s)
}

// References lists a word that begins with prefix for each snapshot that has one.
func (e *Engine) References(ctx context.Context, prefix string) ([]catalog.Candidate, error) {
	return e.catalog.References(ctx, prefix)
}

// Containers lists the names of all containers.
func (e *Engine) Containers(ctx context.Context) ([]catalog.Candidate, error) {
	return e.catalog.Containers(ctx)
}

// VolumeNames lists volumes: those that a container mounts, if one is named.
func (e *Engine) VolumeNames(ctx context.Context, mountedBy string) ([]catalog.Candidate, error) {
	return e.catalog.VolumeNames(ctx, mountedBy)
}

// Stores lists the volumes that were made to keep the content of volumes.
func (e *Engine) Stores(ctx context.Context) ([]catalog.Candidate, error) {
	return e.catalog.Stores(ctx)
}

// NetworkNames lists networks.
func (e *Engine) NetworkNames(ctx context.Context) ([]catalog.Candidate, error) {
	return e.catalog.NetworkNames(ctx)
}

// Services lists the containers of the services of that name; of all, if it is empty.
func (e *Engine) Services(ctx context.Context, name string) ([]catalog.Service, error) {
	return e.catalog.Services(ctx, name)
}

// FormerServices lists the containers of the services of that name that there are snapshots of.
func (e *Engine) FormerServices(ctx context.Context, name string) ([]catalog.Service, error) {
	return e.catalog.FormerServices(ctx, name)
}

// Entries hands every entry of an archived volume to visit, sorted by path.
func (e *Engine) Entries(ctx context.Context, s catalog.Snapshot, m labels.Mount, detail archives.Detail, visit func(volumebackup.Entry)) error {
	return e.archives.Entries(ctx, s, m, detail, visit)
}

// RootEntries hands every entry of a snapshot's root filesystem to visit.
func (e *Engine) RootEntries(ctx context.Context, s catalog.Snapshot, detail archives.Detail, visit func(volumebackup.Entry)) error {
	return e.extract.RootEntries(ctx, s, detail, visit)
}

// Diff hands to visit each change between two snapshots, or a snapshot and a container as it is now.
func (e *Engine) Diff(ctx context.Context, o diff.Options, p plan.Progress, visit func(diff.Change)) error {
	return e.diff.Diff(ctx, o, p, visit)
}

// Extract copies files out of a snapshot to a directory of this machine.
func (e *Engine) Extract(ctx context.Context, source extract.Source, destination string, p plan.Progress) error {
	return e.extract.Unpack(ctx, source, destination, p)
}

// ExtractTar writes files of a snapshot to out as a tar.
func (e *Engine) ExtractTar(ctx context.Context, source extract.Source, out io.Writer, p plan.Progress) error {
	return e.extract.Tar(ctx, source, out, p)
}

// Children lists what is in a directory of a snapshot.
func (e *Engine) Children(ctx context.Context, source extract.Source) ([]extract.Child, error) {
	return e.extract.Children(ctx, source)
}

// Attachment writes an attachment of a snapshot to out. It fails if that was not what was stored;
// then what out got is not to be trusted.
func (e *Engine) Attachment(ctx context.Context, s catalog.Snapshot, name string, out io.Writer) error {
	return e.archives.ReadAttachment(ctx, s, name, out)
}

// Annotate changes what is known about a snapshot, which keeps its layers and its ID.
func (e *Engine) Annotate(ctx context.Context, a capture.Annotation, p plan.Progress) (catalog.Snapshot, error) {
	return e.capture.Annotate(ctx, a, p)
}

// Remove untags and deletes the snapshots that words mean, and says what became of each:
// one that cannot be removed does not keep the others.
func (e *Engine) Remove(ctx context.Context, words []string, o removal.Options, p plan.Progress) []removal.Removal {
	return e.removal.Remove(ctx, words, o, p)
}

// Verify finds out whether snapshots are whole. It changes nothing.
func (e *Engine) Verify(ctx context.Context, o verify.Options, p plan.Progress) (verify.Report, error) {
	return e.verify.Verify(ctx, o, p)
}

// Sweep frees, in the store of new snapshots, the archives of snapshots whose images were
// removed long ago, and removes what interrupted commands have left.
func (e *Engine) Sweep(ctx context.Context, p plan.Progress) { e.removal.Sweep(ctx, p) }

// FindPurgeable finds everything that this program has made on the engine, but containers
// and their volumes.
func (e *Engine) FindPurgeable(ctx context.Context, p plan.Progress) (all []removal.Purgeable, kept []string, err error) {
	return e.removal.FindPurgeable(ctx, p)
}

// Purge removes what [Engine.FindPurgeable] has found. It returns what it has removed.
func (e *Engine) Purge(ctx context.Context, all []removal.Purgeable, p plan.Progress) ([]removal.Purgeable, error) {
	return e.removal.Purge(ctx, all, p)
}

// Thaw lets containers run again that an interrupted operation has frozen. One
// that is gone or thawed already is as good.
func (e *Engine) Thaw(ctx context.Context, containers []string) error {
	_, err := e.docker.Thaw(ctx, containers)
	return err
}

// EndHook ends the hooks of a client that died: it runs the post hook. An error means that it has to
// be called again.
func (e *Engine) EndHook(ctx context.Context, x dockerop.Exec) error {
	return e.capture.EndHook(ctx, x)
}

// Restore brings a snapshot back as a new container. The original is not
// touched. Everything is checked before anything is made; if making it fails,
// what was made is removed.
func (e *Engine) Restore(ctx context.Context, o runconfig.RestoreOptions, p plan.Progress) (build.Restored, error) {
	return e.copies.Restore(ctx, o, p)
}

// RemoveCopies removes the containers and volumes that restores have made of the
// snapshots that words mean. The snapshots stay.
func (e *Engine) RemoveCopies(ctx context.Context, words []string, force bool, p plan.Progress) []copies.Removed {
	return e.copies.RemoveCopies(ctx, words, force, p)
}

// Replace brings a snapshot back in place: the container of that name becomes
// what it was, and so do its volumes. It is a transaction: whatever fails, the same
// container runs again with the data that it had.
func (e *Engine) Replace(ctx context.Context, o replace.Options, p plan.Progress) (replace.Result, error) {
	all, err := e.ReplaceTogether(ctx, []replace.Options{o}, p)
	if err != nil {
		return replace.Result{}, err
	}
	return all[0], nil
}

// ReplaceTogether brings snapshots of several containers back in place: all of them become what they were, or none does.
// The results are in the order of the options.
func (e *Engine) ReplaceTogether(ctx context.Context, all []replace.Options, p plan.Progress) ([]replace.Result, error) {
	return e.replace.Replace(ctx, all, p)
}

// FindUndo returns the options of a restore in place that takes back the last one of a container, and of all that were restored
// together with it.
func (e *Engine) FindUndo(ctx context.Context, container string) ([]replace.Options, error) {
	return e.replace.FindUndo(ctx, container)
}

// Undoable lists the containers that [Engine.FindUndo] finds something for.
func (e *Engine) Undoable(ctx context.Context) ([]catalog.Candidate, error) {
	return e.catalog.Undoable(ctx)
}

// Settle puts right what was interrupted of restores in place of a container, and
// waits first for what is under way.
func (e *Engine) Settle(ctx context.Context, name string, p plan.Progress) error {
	return e.replace.Settle(ctx, name, p)
}

// List returns the snapshots that match, in one engine call, and beside it one look
// for the store that holds what their volumes had. It tells once if somebody has cleaned up images of this program.
func (e *Engine) List(ctx context.Context, o catalog.ListOptions, p plan.Progress) ([]catalog.Snapshot, error) {
	var found []catalog.Snapshot
	var hasWorkers bool
	var listed error
	var stores archives.KnownStores
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() error {
		found, hasWorkers, listed = e.catalog.ListBeside(callsCtx, o, workerimage.Repository, p)
		return nil // there may be something to tell all the same
	})
	calls.Go(func() (err error) {
		stores, err = e.archives.OwnStore(callsCtx)
		return err
	})
	err := calls.Wait()
	if err == nil && !hasWorkers && (listed == nil || cerrdefs.IsNotFound(listed)) {
		e.archives.TellCleaned(ctx, stores, p)
	}
	if listed != nil {
		return nil, listed
	}
	if err != nil {
		return nil, err
	}
	return found, e.archives.MarkGone(ctx, found, stores, p)
}
