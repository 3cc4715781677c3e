package enginetest

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

// FakeVolumes are [Volumes] on a [fakeDocker]: workers are containers of it, and
// what a volume holds is a text.
type FakeVolumes struct {
	docker   *Docker
	Archives map[string][]string // by snapshot: what its volumes held
	SweepDue bool
	Rotten   error // what a look at the way back finds
	Origins  map[string]volumebackup.Origin
	Homes    map[string]string     // the store that the archives of a snapshot, or the record of a worker, are in
	Home     volumebackup.StoreRef // the one that this is about
	before   func()                // called before a worker is made; nil: nothing
	Waiting  func(holder string)   // called when somebody waits for that worker; nil: nobody does for long
}

// WorkerImage is that of every worker.
const WorkerImage = "cua-snapshot/worker:0123456789ab"

// withVolumes has volumes archived. The image of workers is there, as after the first one.
func (f *Docker) withVolumes() {
	f.AddImage(WorkerImage, &container.Config{Cmd: []string{"worker"}})
	f.Service = &FakeVolumes{docker: f, Archives: map[string][]string{}, Origins: map[string]volumebackup.Origin{}, Homes: map[string]string{}, Home: volumebackup.StoreRef{Name: volumebackup.DefaultStore}}
}

// After are the same volumes, for a client of which something is done before it makes
// its first worker.
func (v *FakeVolumes) After(do func()) *FakeVolumes {
	other := *v
	other.before = sync.OnceFunc(do)
	return &other
}

func (v *FakeVolumes) At(store volumebackup.StoreRef) archives.Service {
	other := *v
	other.Home = store
	return &other
}

// open fails if there is another store of that name.
func (v *FakeVolumes) open() error {
	if found := v.docker.FindVolume(v.Home.Name); found != nil && v.Home.ID != "" && found.Labels[labels.KeyStoreID] != v.Home.ID {
		return &volumebackup.NoStoreError{Store: v.Home.Name, Snapshot: v.Home.Snapshot}
	}
	return nil
}

// locked looks at what several operations share.
func (v *FakeVolumes) locked(look func() error) error {
	v.docker.Mu.Lock()
	defer v.docker.Mu.Unlock()
	return look()
}

// holds fails if the archives of a snapshot are not in this store.
func (v *FakeVolumes) holds(snapshot string, archive int) error {
	if len(v.Archives[snapshot]) <= archive || v.Homes[snapshot] != v.Home.Name {
		return fmt.Errorf("archive %d of %s: %w", archive, snapshot, protocol.NotFound)
	}
	return nil
}

// launch makes a worker that runs. A lock is taken from the dead.
func (v *FakeVolumes) launch(ctx context.Context, name string, journal map[string]string, volumes []string, readOnly bool, makes ...volume.CreateOptions) (*fakeWorker, error) {
	if v.before != nil {
		v.before()
	}
	if err := v.locked(v.open); err != nil {
		return nil, err
	}
	for {
		var made, holder *FakeContainer
		err := v.docker.do(ctx, "launch "+name, func() error {
			if name != "" {
				holder = v.docker.FindContainer(name)
			}
			if holder == nil {
				made = v.Worker(name, journal, volumes, readOnly)
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
			return &fakeWorker{service: v, id: made.ID, name: made.Name, volumes: volumes}, nil
		}
		if err := v.repair(ctx, holder); err != nil {
			return nil, err
		}
	}
}

func (v *FakeVolumes) Worker(name string, journal map[string]string, volumes []string, readOnly bool) *FakeContainer {
	f := v.docker
	c := &FakeContainer{ID: f.NewID(), Name: name, State: "running", Image: f.FindImage(WorkerImage).ID, created: f.Clock, started: f.Clock.Add(time.Duration(f.serial)), Host: &container.HostConfig{}}
	if name == "" {
		c.Name = "cua-snapshot-worker-" + c.ID[:8]
	}
	c.Config = &container.Config{Image: WorkerImage, Labels: volumebackup.JournalLabels("v1")}
	maps.Copy(c.Config.Labels, journal)
	for i, volume := range volumes {
		c.Mounts = append(c.Mounts, container.MountPoint{Type: mount.TypeVolume, Name: volume, Destination: fmt.Sprint("/mnt/", i), RW: !readOnly})
	}
	c.Mounts = append(c.Mounts, container.MountPoint{Type: mount.TypeVolume, Name: v.Home.Name, Destination: archives.StoreMount, RW: true})
	f.Containers = append(f.Containers, c)
	return c
}

// repair waits for a live holder of a lock, and puts a dead one aside.
func (v *FakeVolumes) repair(ctx context.Context, holder *FakeContainer) error {
	if holder.State == "running" || holder.State == "created" {
		return v.wait(holder)
	}
	if holder.Config.Labels[pending.LabelJournal] != "" {
		return v.docker.ContainerRename(ctx, holder.ID, holder.Name+"-"+holder.ID[:6])
	}
	return v.docker.ContainerRemove(ctx, holder.ID, container.RemoveOptions{Force: true})
}

// wait has whoever holds something up get on; if nobody does, it was waited for in vain.
func (v *FakeVolumes) wait(holder *FakeContainer) error {
	if v.Waiting == nil {
		return &volumebackup.LockedError{Holder: holder.Name, Purpose: holder.Config.Labels[volumebackup.LabelPurpose]}
	}
	v.Waiting(holder.Name)
	return nil
}

// IsWorker goes by the image, as far as a fake has a content of it.
func (v *FakeVolumes) IsWorker(_ context.Context, c container.Summary) (bool, error) {
	_, labelled := c.Labels[volumebackup.LabelPurpose]
	return labelled && c.Image == WorkerImage && strings.HasPrefix(c.Names[0], "/cua-snapshot-"), nil
}

// Images has that of the workers, as long as it is there.
func (v *FakeVolumes) Images(ctx context.Context) (images []image.Summary, err error) {
	err = v.docker.do(ctx, "worker images", func() error {
		if i := v.docker.FindImage(WorkerImage); i != nil {
			images = []image.Summary{{ID: i.ID, Size: 30}}
		}
		return nil
	})
	return images, err
}

// Prepare has nothing to look for: the image is there.
func (v *FakeVolumes) Prepare(context.Context) {}

func (v *FakeVolumes) Store() string { return v.Home.Name }

func (v *FakeVolumes) Await(_ context.Context, workerID string) error {
	v.docker.Mu.Lock()
	holder := v.docker.FindContainer(workerID)
	alive := holder != nil && holder.State == "running"
	v.docker.Mu.Unlock()
	if !alive {
		return nil
	}
	return v.wait(holder)
}

func (v *FakeVolumes) Begin(ctx context.Context, o volumebackup.BackupOptions, _ volumebackup.Progress) (archives.Backup, error) {
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
	return &FakeBackup{worker: w, o: o}, nil
}

func (v *FakeVolumes) TakeLock(ctx context.Context, o volumebackup.LockOptions, _ volumebackup.Progress) (archives.Lock, error) {
	frozen, err := json.Marshal(o.Freezes)
	if err != nil {
		return nil, err
	}
	journal := map[string]string{volumebackup.LabelPurpose: o.Purpose, labels.Prefix + "worker.frozen": string(frozen)}
	maps.Copy(journal, o.Journal)
	w, err := v.launch(ctx, volumebackup.LockName(o.Containers[0]), journal, o.Volumes, false)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (v *FakeVolumes) OpenWorker(ctx context.Context, o volumebackup.WorkerOptions, _ volumebackup.Progress) (archives.Worker, error) {
	journal := map[string]string{volumebackup.LabelPurpose: o.Purpose, labels.Prefix + "worker.frozen": "null"}
	maps.Copy(journal, o.Journal)
	_, compares := o.Task.(volumebackup.Compare)
	w, err := v.launch(ctx, o.Name, journal, o.Volumes, compares, o.Make...)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Remove refuses a claim that is not by the container whose archives they are.
func (v *FakeVolumes) Remove(ctx context.Context, o volumebackup.RemoveOptions) (removed volumebackup.Removed, err error) {
	err = v.docker.do(ctx, "remove archives", func() error {
		if isThere := v.open() == nil; !isThere {
			return nil // they went with their store
		}
		if o.Seen != nil {
			v.docker.Seen = append(v.docker.Seen, *o.Seen)
		}
		for _, claim := range o.Claims {
			id := claim.Snapshot
			switch origin, ok := v.Origins[id]; {
			case !ok || v.Homes[id] != v.Home.Name:
			case origin.Container != claim.Container || origin.ContainerName != claim.ContainerName:
				removed.Foreign = append(removed.Foreign, id)
			default:
				delete(v.Archives, id)
				delete(v.Origins, id)
				removed.Removed = append(removed.Removed, id)
			}
		}
		return nil
	})
	return removed, err
}

func (v *FakeVolumes) Entries(_ context.Context, snapshot string, archive int, _ string, _ func(volumebackup.Entry)) error {
	return v.locked(func() error { return v.holds(snapshot, archive) })
}

func (v *FakeVolumes) CheckJournal(ctx context.Context, worker, text string) error {
	return v.docker.do(ctx, "check journal", func() error {
		recorded, ok := v.docker.Records[worker]
		switch {
		case !ok || v.Homes[worker] != v.Home.Name:
			return fmt.Errorf("no record of %s: %w", worker, protocol.NotFound)
		case recorded != text:
			return fmt.Errorf("the record of %s is of another: %w", worker, protocol.Damaged)
		}
		return nil
	})
}

func (v *FakeVolumes) ForgetJournal(ctx context.Context, worker string) error {
	return v.docker.do(ctx, "forget journal", func() error {
		delete(v.docker.Records, worker)
		return nil
	})
}

// fakeWorker is a worker at work.
type fakeWorker struct {
	service  *FakeVolumes
	id, name string
	volumes  []string
	ended    bool
}

// request is how every request goes: a worker that was killed answers none.
func (w *fakeWorker) request(ctx context.Context, what string, effect func() error) error {
	return w.service.docker.do(ctx, what, func() error {
		if c := w.service.docker.FindContainer(w.id); c == nil || c.State != "running" {
			return fmt.Errorf("%s: the worker has ended", what)
		}
		return effect()
	})
}

func (w *fakeWorker) Begin(_ context.Context, o volumebackup.BackupOptions, _ volumebackup.Progress) (archives.Backup, error) {
	return &FakeBackup{worker: w, o: o, borrowed: true}, nil
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
		return w.service.Rotten
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
			content = w.service.Archives[snapshot][t.Archive]
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, state := range []string{"half of " + content, content} {
			err := w.request(ctx, "apply "+t.Volume, func() error {
				w.service.docker.FindVolume(t.Volume).Content = state
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
		w.service.docker.Records[w.id], w.service.Homes[w.id] = text, w.service.Home.Name
		return nil
	})
}

func (w *fakeWorker) ForgetJournal(ctx context.Context) error {
	return w.request(ctx, "forget journal", func() error {
		delete(w.service.docker.Records, w.id)
		return nil
	})
}

func (w *fakeWorker) Held(ctx context.Context) error {
	return w.service.docker.do(ctx, "held", func() error {
		if c := w.service.docker.FindContainer(w.id); c == nil || c.State != "running" || c.Name != w.name {
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
	w.ends(func(c *FakeContainer) { c.End(w.service.docker.Clock) })
	return nil
}

func (w *fakeWorker) Close() error {
	w.ends(func(c *FakeContainer) { w.service.docker.Drop(c, false) })
	if w.service.docker.isDead() {
		return errors.New("injected: nobody is there to close the worker")
	}
	return nil
}

// ends ends the worker, unless its client cannot any more.
func (w *fakeWorker) ends(how func(*FakeContainer)) {
	w.service.docker.Mu.Lock()
	defer w.service.docker.Mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	if c := w.service.docker.FindContainer(w.id); c != nil && !w.service.docker.Dead {
		how(c)
	}
}

// FakeBackup is a backup in a worker.
type FakeBackup struct {
	worker   *fakeWorker
	o        volumebackup.BackupOptions
	borrowed bool
	read     []string
}

func (b *FakeBackup) Pass(ctx context.Context, _ volumebackup.Mode) (archives []volumebackup.Archive, err error) {
	err = b.worker.request(ctx, "pass", func() error {
		b.read = nil
		for _, v := range b.o.Volumes {
			content := b.worker.service.docker.FindVolume(v.Name).Content
			b.read = append(b.read, content)
			archives = append(archives, volumebackup.Archive{
				Volume: v.Name, Number: v.Number, Root: fmt.Sprintf("%x", sha256.Sum256([]byte(content))), Entries: 2, Bytes: int64(len(content)),
			})
		}
		return nil
	})
	return archives, err
}

func (b *FakeBackup) Publish(ctx context.Context, o volumebackup.Origin) ([]volumebackup.Archive, error) {
	return nil, b.worker.request(ctx, "publish", func() error {
		b.worker.service.Archives[b.o.Snapshot] = slices.Clone(b.read)
		b.worker.service.Origins[b.o.Snapshot] = o
		b.worker.service.Homes[b.o.Snapshot] = b.worker.service.Home.Name
		return nil
	})
}

// Store has an ID if the test has made the volume.
func (b *FakeBackup) Store() (name, id string) {
	name = b.worker.service.Store()
	if v := b.worker.service.docker.FindVolume(name); v != nil {
		id = v.Labels[labels.KeyStoreID]
	}
	return name, id
}

func (b *FakeBackup) SweepDue() bool { return b.worker.service.SweepDue }

func (b *FakeBackup) Abandon() error { return b.worker.Abandon() }

func (b *FakeBackup) Close() error {
	if b.borrowed {
		return nil
	}
	return b.worker.Close()
}
