package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// fakeVolumes are [Volumes] on a [fakeDocker]: workers are containers of it, and
// what a volume holds is a text.
type fakeVolumes struct {
	docker   *fakeDocker
	archives map[string][]string // by snapshot: what its volumes held
	sweepDue bool
	rotten   error // what a look at the way back finds
	origins  map[string]volumebackup.Origin
	homes    map[string]string     // the store that the archives of a snapshot, or the record of a worker, are in
	store    volumebackup.StoreRef // the one that this is about
	before   func()                // called before a worker is made; nil: nothing
	waiting  func(holder string)   // called when somebody waits for that worker; nil: nobody does for long
}

// workerImage is that of every worker.
const workerImage = "cua-snapshot/worker:0123456789ab"

// withVolumes has an engine's volumes archived.
func (f *fakeDocker) withVolumes() *fakeVolumes {
	f.addImage(workerImage, &container.Config{Cmd: []string{"worker"}})
	f.service = &fakeVolumes{docker: f, archives: map[string][]string{}, origins: map[string]volumebackup.Origin{}, homes: map[string]string{}, store: volumebackup.StoreRef{Name: volumebackup.DefaultStore}}
	return f.service
}

// after are the same volumes, for a client of which something is done before it makes
// its first worker.
func (v *fakeVolumes) after(do func()) *fakeVolumes {
	other := *v
	other.before = sync.OnceFunc(do)
	return &other
}

func (v *fakeVolumes) At(store volumebackup.StoreRef) archives.Service {
	other := *v
	other.store = store
	return &other
}

// open fails if there is another store of that name.
func (v *fakeVolumes) open() error {
	if found := v.docker.findVolume(v.store.Name); found != nil && v.store.ID != "" && found.labels[labels.KeyStoreID] != v.store.ID {
		return &volumebackup.NoStoreError{Store: v.store.Name, Snapshot: v.store.Snapshot}
	}
	return nil
}

// locked looks at what several operations share.
func (v *fakeVolumes) locked(look func() error) error {
	v.docker.mu.Lock()
	defer v.docker.mu.Unlock()
	return look()
}

// holds fails if the archives of a snapshot are not in this store.
func (v *fakeVolumes) holds(snapshot string, archive int) error {
	if len(v.archives[snapshot]) <= archive || v.homes[snapshot] != v.store.Name {
		return fmt.Errorf("archive %d of %s: %w", archive, snapshot, protocol.NotFound)
	}
	return nil
}

// launch makes a worker that runs. A lock is taken from the dead.
func (v *fakeVolumes) launch(ctx context.Context, name string, journal map[string]string, volumes []string, readOnly bool, makes ...volume.CreateOptions) (*fakeWorker, error) {
	if v.before != nil {
		v.before()
	}
	if err := v.locked(v.open); err != nil {
		return nil, err
	}
	for {
		var made, holder *fakeContainer
		err := v.docker.do(ctx, "launch "+name, func() error {
			if name != "" {
				holder = v.docker.findContainer(name)
			}
			if holder == nil {
				made = v.worker(name, journal, volumes, readOnly)
				for _, create := range makes {
					v.docker.makeVolume(create)
				}
			}
			return nil
		})
		switch {
		case made != nil && err != nil && !v.docker.isDead(): // Ctrl-C, or no answer: it is removed at once
			v.docker.vanish(made)
			return nil, err
		case err != nil:
			return nil, err
		case holder == nil:
			return &fakeWorker{service: v, id: made.id, name: made.name, volumes: volumes}, nil
		}
		if err := v.repair(ctx, holder); err != nil {
			return nil, err
		}
	}
}

func (v *fakeVolumes) worker(name string, journal map[string]string, volumes []string, readOnly bool) *fakeContainer {
	f := v.docker
	c := &fakeContainer{id: f.newID(), name: name, state: "running", image: f.findImage(workerImage).id, created: f.clock, started: f.clock.Add(time.Duration(f.serial)), host: &container.HostConfig{}}
	if name == "" {
		c.name = "cua-snapshot-worker-" + c.id[:8]
	}
	c.config = &container.Config{Image: workerImage, Labels: volumebackup.JournalLabels("v1")}
	maps.Copy(c.config.Labels, journal)
	for i, volume := range volumes {
		c.mounts = append(c.mounts, container.MountPoint{Type: mount.TypeVolume, Name: volume, Destination: fmt.Sprint("/mnt/", i), RW: !readOnly})
	}
	c.mounts = append(c.mounts, container.MountPoint{Type: mount.TypeVolume, Name: v.store.Name, Destination: archives.StoreMount, RW: true})
	f.containers = append(f.containers, c)
	return c
}

// repair waits for a live holder of a lock, and puts a dead one aside.
func (v *fakeVolumes) repair(ctx context.Context, holder *fakeContainer) error {
	if holder.state == "running" || holder.state == "created" {
		return v.wait(holder)
	}
	if holder.config.Labels[pending.LabelJournal] != "" {
		return v.docker.ContainerRename(ctx, holder.id, holder.name+"-"+holder.id[:6])
	}
	return v.docker.ContainerRemove(ctx, holder.id, container.RemoveOptions{Force: true})
}

// wait has whoever holds something up get on; if nobody does, it was waited for in vain.
func (v *fakeVolumes) wait(holder *fakeContainer) error {
	if v.waiting == nil {
		return &volumebackup.LockedError{Holder: holder.name, Purpose: holder.config.Labels[volumebackup.LabelPurpose]}
	}
	v.waiting(holder.name)
	return nil
}

// IsWorker goes by the image, as far as a fake has a content of it.
func (v *fakeVolumes) IsWorker(_ context.Context, c container.Summary) (bool, error) {
	_, labelled := c.Labels[volumebackup.LabelPurpose]
	return labelled && c.Image == workerImage && strings.HasPrefix(c.Names[0], "/cua-snapshot-"), nil
}

// Images has that of the workers, as long as it is there.
func (v *fakeVolumes) Images(ctx context.Context) (images []image.Summary, err error) {
	err = v.docker.do(ctx, "worker images", func() error {
		if i := v.docker.findImage(workerImage); i != nil {
			images = []image.Summary{{ID: i.id, Size: 30}}
		}
		return nil
	})
	return images, err
}

// Prepare has nothing to look for: the image is there.
func (v *fakeVolumes) Prepare(context.Context) {}

func (v *fakeVolumes) Store() string { return v.store.Name }

func (v *fakeVolumes) Await(_ context.Context, workerID string) error {
	v.docker.mu.Lock()
	holder := v.docker.findContainer(workerID)
	alive := holder != nil && holder.state == "running"
	v.docker.mu.Unlock()
	if !alive {
		return nil
	}
	return v.wait(holder)
}

func (v *fakeVolumes) Begin(ctx context.Context, o volumebackup.BackupOptions, _ volumebackup.Progress) (archives.Backup, error) {
	var names []string
	for _, volume := range o.Volumes {
		names = append(names, volume.Name)
	}
	frozen, _ := json.Marshal(o.Freezes)
	journal := map[string]string{volumebackup.LabelPurpose: "create", labels.Prefix + "worker.frozen": string(frozen)}
	w, err := v.launch(ctx, volumebackup.LockName(o.Container), journal, names, true)
	if err != nil {
		return nil, err
	}
	return &fakeBackup{worker: w, o: o}, nil
}

func (v *fakeVolumes) OpenRestore(ctx context.Context, o volumebackup.RestoreOptions, _ volumebackup.Progress) (archives.Worker, error) {
	name := o.Worker
	if o.Lock != "" {
		name = volumebackup.LockName(o.Lock)
	}
	frozen, _ := json.Marshal(o.Freezes)
	journal := map[string]string{volumebackup.LabelPurpose: o.Purpose, labels.Prefix + "worker.frozen": string(frozen)}
	maps.Copy(journal, o.Journal)
	w, err := v.launch(ctx, name, journal, o.Volumes, o.ReadOnly, o.Make...)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Remove refuses a claim that is not by the container whose archives they are.
func (v *fakeVolumes) Remove(ctx context.Context, o volumebackup.RemoveOptions) (removed volumebackup.Removed, err error) {
	err = v.docker.do(ctx, "remove archives", func() error {
		if isThere := v.open() == nil; !isThere {
			return nil // they went with their store
		}
		if o.Seen != nil {
			v.docker.seen = append(v.docker.seen, *o.Seen)
		}
		for _, claim := range o.Claims {
			id := claim.Snapshot
			switch origin, ok := v.origins[id]; {
			case !ok || v.homes[id] != v.store.Name:
			case origin.Container != claim.Container || origin.ContainerName != claim.ContainerName:
				removed.Foreign = append(removed.Foreign, id)
			default:
				delete(v.archives, id)
				delete(v.origins, id)
				removed.Removed = append(removed.Removed, id)
			}
		}
		return nil
	})
	return removed, err
}

func (v *fakeVolumes) Entries(_ context.Context, snapshot string, archive int, _ string, _ func(volumebackup.Entry)) error {
	return v.locked(func() error { return v.holds(snapshot, archive) })
}

func (v *fakeVolumes) CheckJournal(ctx context.Context, worker, text string) error {
	return v.docker.do(ctx, "check journal", func() error {
		recorded, ok := v.docker.records[worker]
		switch {
		case !ok || v.homes[worker] != v.store.Name:
			return fmt.Errorf("no record of %s: %w", worker, protocol.NotFound)
		case recorded != text:
			return fmt.Errorf("the record of %s is of another: %w", worker, protocol.Damaged)
		}
		return nil
	})
}

func (v *fakeVolumes) ForgetJournal(ctx context.Context, worker string) error {
	return v.docker.do(ctx, "forget journal", func() error {
		delete(v.docker.records, worker)
		return nil
	})
}

// fakeWorker is a worker at work.
type fakeWorker struct {
	service  *fakeVolumes
	id, name string
	volumes  []string
	ended    bool
}

// request is how every request goes: a worker that was killed answers none.
func (w *fakeWorker) request(ctx context.Context, what string, effect func() error) error {
	return w.service.docker.do(ctx, what, func() error {
		if c := w.service.docker.findContainer(w.id); c == nil || c.state != "running" {
			return fmt.Errorf("%s: the worker has ended", what)
		}
		return effect()
	})
}

func (w *fakeWorker) Begin(_ context.Context, o volumebackup.BackupOptions, _ volumebackup.Progress) (archives.Backup, error) {
	return &fakeBackup{worker: w, o: o, borrowed: true}, nil
}

func (w *fakeWorker) Check(ctx context.Context, snapshot string, t volumebackup.Target) error {
	return w.request(ctx, "check", func() error {
		return w.service.holds(snapshot, t.Archive)
	})
}

// Plan looks at nothing.
func (w *fakeWorker) Plan(_ context.Context, _ string, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error) {
	return make([]volumebackup.RestoreResult, len(targets)), nil
}

// Secure finds what was said to be damaged.
func (w *fakeWorker) Secure(ctx context.Context, safety string, now []volumebackup.Target, _ string, targets []volumebackup.Target) error {
	return w.request(ctx, "secure", func() error {
		for _, t := range targets {
			at := slices.IndexFunc(now, func(n volumebackup.Target) bool { return n.Volume == t.Volume })
			if at < 0 {
				continue
			}
			if err := w.service.holds(safety, now[at].Archive); err != nil {
				return err
			}
		}
		return w.service.rotten
	})
}

// Apply writes a volume in two steps: in between there is a mixture.
func (w *fakeWorker) Apply(ctx context.Context, snapshot string, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error) {
	for _, t := range targets {
		var content string
		err := w.service.locked(func() error {
			if err := w.service.holds(snapshot, t.Archive); err != nil {
				return err
			}
			content = w.service.archives[snapshot][t.Archive]
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, state := range []string{"half of " + content, content} {
			err := w.request(ctx, "apply "+t.Volume, func() error {
				w.service.docker.findVolume(t.Volume).content = state
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return make([]volumebackup.RestoreResult, len(targets)), nil
}

func (w *fakeWorker) RecordJournal(ctx context.Context, text string) error {
	return w.request(ctx, "record journal", func() error {
		w.service.docker.records[w.id], w.service.homes[w.id] = text, w.service.store.Name
		return nil
	})
}

func (w *fakeWorker) ForgetJournal(ctx context.Context) error {
	return w.request(ctx, "forget journal", func() error {
		delete(w.service.docker.records, w.id)
		return nil
	})
}

func (w *fakeWorker) Held(ctx context.Context) error {
	return w.service.docker.do(ctx, "held", func() error {
		if c := w.service.docker.findContainer(w.id); c == nil || c.state != "running" || c.name != w.name {
			return volumebackup.ErrLost
		}
		return nil
	})
}

func (w *fakeWorker) Release(ctx context.Context) error {
	name := "cua-snapshot-" + w.id[:6] + "-settled"
	err := w.service.docker.ContainerRename(ctx, w.id, name)
	if c, _, inspectErr := w.service.docker.ContainerInspectWithRaw(context.WithoutCancel(ctx), w.id, false); err == nil || inspectErr == nil && c.Name == "/"+name {
		return nil
	}
	return err
}

func (w *fakeWorker) ID() string { return w.id }

func (w *fakeWorker) Abandon() error {
	w.ends(func(c *fakeContainer) { c.end(w.service.docker.clock) })
	return nil
}

func (w *fakeWorker) Close() error {
	w.ends(func(c *fakeContainer) { w.service.docker.drop(c, false) })
	if w.service.docker.isDead() {
		return errors.New("injected: nobody is there to close the worker")
	}
	return nil
}

// ends ends the worker, unless its client cannot any more.
func (w *fakeWorker) ends(how func(*fakeContainer)) {
	w.service.docker.mu.Lock()
	defer w.service.docker.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	if c := w.service.docker.findContainer(w.id); c != nil && !w.service.docker.dead {
		how(c)
	}
}

// fakeBackup is a backup in a worker.
type fakeBackup struct {
	worker   *fakeWorker
	o        volumebackup.BackupOptions
	borrowed bool
	read     []string
}

func (b *fakeBackup) Pass(ctx context.Context, _ volumebackup.Mode) (archives []volumebackup.Archive, err error) {
	err = b.worker.request(ctx, "pass", func() error {
		b.read = nil
		for _, v := range b.o.Volumes {
			content := b.worker.service.docker.findVolume(v.Name).content
			b.read = append(b.read, content)
			archives = append(archives, volumebackup.Archive{
				Volume: v.Name, Number: v.Number, Root: fmt.Sprintf("%x", sha256.Sum256([]byte(content))), Entries: 2, Bytes: int64(len(content)),
			})
		}
		return nil
	})
	return archives, err
}

func (b *fakeBackup) Publish(ctx context.Context, o volumebackup.Origin) ([]volumebackup.Archive, error) {
	return nil, b.worker.request(ctx, "publish", func() error {
		b.worker.service.archives[b.o.Snapshot] = slices.Clone(b.read)
		b.worker.service.origins[b.o.Snapshot] = o
		b.worker.service.homes[b.o.Snapshot] = b.worker.service.store.Name
		return nil
	})
}

// Store has an ID if the test has made the volume.
func (b *fakeBackup) Store() (name, id string) {
	name = b.worker.service.Store()
	if v := b.worker.service.docker.findVolume(name); v != nil {
		id = v.labels[labels.KeyStoreID]
	}
	return name, id
}

func (b *fakeBackup) SweepDue() bool { return b.worker.service.sweepDue }

func (b *fakeBackup) Abandon() error { return b.worker.Abandon() }

func (b *fakeBackup) Close() error {
	if b.borrowed {
		return nil
	}
	return b.worker.Close()
}
