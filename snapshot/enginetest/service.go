package enginetest

import (
	"context"
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

// FakeVolumes is an [archives.Service] on a [Docker]. Its workers are containers of that engine,
// and what a volume holds is a text.
type FakeVolumes struct {
	docker   *Docker
	Archives map[string][]string              // the contents of the volumes, by snapshot ID
	Attached map[string]map[string]string     // attachments by name, by snapshot ID
	Read     map[string][]volumebackup.Volume // what was asked to be archived, by snapshot ID
	Applied  map[string]volumebackup.Target   // what was asked to be restored last, by volume
	SweepDue bool
	// Asked is what a backup that was published was begun with, by snapshot ID; Contradicted, what each publishes.
	Asked        map[string]volumebackup.BackupOptions
	Contradicted int64

	Freed   int64                            // what a removal says that it has freed
	Rotten  error                            // Secure fails with it
	Damages map[string][]volumebackup.Damage // what Verify finds, by snapshot ID
	Origins map[string]volumebackup.Origin
	Homes   map[string]string     // which store has the archives of a snapshot, or the journal of a worker, by ID
	Missed  map[string]time.Time  // when the image of a snapshot was first missed, by ID
	Home    volumebackup.StoreRef // the store of this service
	// RootEntries is how many entries each root filesystem has that a comparer was told of.
	RootEntries  int64
	WalkedMounts []string            // where a walk finds something mounted
	WalkedRoots  map[string]bool     // the keys of the lists that walks have left
	before       func()              // called before a worker is made; may be nil
	Waiting      func(holder string) // called when somebody waits for the worker holder; nil: waiting fails
}

// WorkerImage is the image of every worker.
const WorkerImage = "cua-snapshot/worker:0123456789ab"

// withVolumes has volumes archived. The image of workers is there, as after the first one.
func (f *Docker) withVolumes() {
	f.AddImage(WorkerImage, &container.Config{Cmd: []string{"worker"}})
	f.Service = &FakeVolumes{docker: f, Archives: map[string][]string{}, Damages: map[string][]volumebackup.Damage{}, Attached: map[string]map[string]string{}, Asked: map[string]volumebackup.BackupOptions{}, Origins: map[string]volumebackup.Origin{}, Read: map[string][]volumebackup.Volume{}, Applied: map[string]volumebackup.Target{}, WalkedRoots: map[string]bool{}, Homes: map[string]string{}, Missed: map[string]time.Time{}, Home: volumebackup.StoreRef{Name: volumebackup.DefaultStore}}
}

// After returns the same service for a client. do is called once, before that makes its first
// worker.
func (v *FakeVolumes) After(do func()) *FakeVolumes {
	other := *v
	other.before = sync.OnceFunc(do)
	return &other
}

// At returns the service for another store.
func (v *FakeVolumes) At(store volumebackup.StoreRef) archives.Service {
	other := *v
	other.Home = store
	return &other
}

// open fails if the store has another ID than it should.
func (v *FakeVolumes) open() error {
	if found := v.docker.FindVolume(v.Home.Name); found != nil && v.Home.ID != "" && found.Labels[labels.KeyStoreID] != v.Home.ID {
		return &volumebackup.NoStoreError{Store: v.Home.Name, Snapshot: v.Home.Snapshot, IsOther: true}
	}
	return nil
}

// locked runs look while no other operation changes anything.
func (v *FakeVolumes) locked(look func() error) error {
	v.docker.Mu.Lock()
	defer v.docker.Mu.Unlock()
	return look()
}

// holds fails if an archive of a snapshot is not in this store.
func (v *FakeVolumes) holds(snapshot string, archive int) error {
	if len(v.Archives[snapshot]) <= archive || v.Homes[snapshot] != v.Home.Name {
		return fmt.Errorf("archive %d of %s: %w", archive, snapshot, protocol.NotFound)
	}
	return nil
}

// launch makes a worker that runs. If a dead worker holds the lock, it takes that over.
func (v *FakeVolumes) launch(ctx context.Context, name string, journal map[string]string, volumes []string, readOnly bool, makes ...volume.CreateOptions) (*fakeWorker, error) {
	if v.before != nil {
		v.before()
	}
	if err := v.locked(v.open); err != nil {
		return nil, err
	}
	if err := v.locked(func() error { return v.docker.areThere(volumes) }); err != nil {
		return nil, err
	}
	for {
		w, holder, err := v.launchOnce(ctx, name, journal, volumes, readOnly, makes...)
		if holder == nil || err != nil {
			return w, err
		}
		if err := v.repair(ctx, holder); err != nil {
			return nil, err
		}
	}
}

// launchOnce starts a worker, or returns the container that has its name.
func (v *FakeVolumes) launchOnce(ctx context.Context, name string, journal map[string]string, volumes []string, readOnly bool, makes ...volume.CreateOptions) (*fakeWorker, *FakeContainer, error) {
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
	case made != nil && err != nil && !v.docker.isDead(): // Ctrl-C, or a lost answer: the real service removes it at once
		v.docker.vanish(made)
		return nil, nil, err
	case holder != nil || err != nil:
		return nil, holder, err
	}
	return &fakeWorker{service: v, id: made.ID, name: made.Name, volumes: volumes}, nil, nil
}

// Worker adds the container of a worker to the engine, without a call that counts or can fail. If
// name is empty, it has a random one.
func (v *FakeVolumes) Worker(name string, journal map[string]string, volumes []string, readOnly bool) *FakeContainer {
	f := v.docker
	c := &FakeContainer{ID: f.NewID(), Name: name, State: "running", Image: f.FindImage(WorkerImage).ID, created: f.Clock, started: f.Clock.Add(time.Duration(f.serial)), Host: &container.HostConfig{}}
	if name == "" {
		c.Name = "cua-snapshot-worker-" + c.ID[:8]
	}
	c.Config = &container.Config{Image: WorkerImage, Labels: volumebackup.JournalLabels("v1")}
	maps.Copy(c.Config.Labels, journal)
	for i, volume := range volumes {
		point := container.MountPoint{Type: mount.TypeVolume, Name: volume, Destination: fmt.Sprint("/mnt/", i), RW: !readOnly}
		if labels.IsPathKey(volume) {
			point.Type, point.Name, point.Source = mount.TypeBind, "", volume
		}
		c.Mounts = append(c.Mounts, point)
	}
	c.Mounts = append(c.Mounts, container.MountPoint{Type: mount.TypeVolume, Name: v.Home.Name, Destination: "/store", RW: true})
	f.Containers = append(f.Containers, c)
	return c
}

// repair waits for a live holder of a lock. It thaws what a dead one has left frozen, and removes the
// holder, or renames it if it has a journal.
func (v *FakeVolumes) repair(ctx context.Context, holder *FakeContainer) error {
	if holder.State == "running" || holder.State == "created" {
		return v.wait(holder)
	}
	if err := v.thaw(ctx, holder); err != nil {
		return err
	}
	if holder.Config.Labels[pending.LabelJournal] != "" {
		return v.docker.ContainerRename(ctx, holder.ID, holder.Name+"-"+holder.ID[:6])
	}
	return v.docker.ContainerRemove(ctx, holder.ID, container.RemoveOptions{Force: true})
}

// thaw lets run again what a dead worker has left frozen.
func (v *FakeVolumes) thaw(ctx context.Context, dead *FakeContainer) error {
	frozen, err := volumebackup.FrozenBy(dead.Config.Labels)
	if err != nil {
		return err
	}
	for _, id := range frozen {
		if c := v.docker.FindContainer(id); c == nil || c.State != "paused" {
			continue
		}
		if err := v.docker.ContainerUnpause(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// wait calls Waiting, which lets the holder go on. Without that, waiting fails.
func (v *FakeVolumes) wait(holder *FakeContainer) error {
	if v.Waiting == nil {
		return &volumebackup.LockedError{Holder: holder.Name, Purpose: holder.Config.Labels[volumebackup.LabelPurpose]}
	}
	v.Waiting(holder.Name)
	return nil
}

// IsWorker recognizes a worker by its image, label and name.
func (v *FakeVolumes) IsWorker(_ context.Context, c container.Summary) (bool, error) {
	_, labelled := c.Labels[volumebackup.LabelPurpose]
	return labelled && c.Image == WorkerImage && strings.HasPrefix(c.Names[0], "/cua-snapshot-"), nil
}

// Images returns the image of the workers, if it exists.
func (v *FakeVolumes) Images(ctx context.Context) (images []image.Summary, err error) {
	err = v.docker.do(ctx, "worker images", func() error {
		if i := v.docker.FindImage(WorkerImage); i != nil {
			images = []image.Summary{{ID: i.ID, Size: 30}}
		}
		return nil
	})
	return images, err
}

// Prepare has nothing to do, because the image exists.
func (v *FakeVolumes) Prepare(context.Context) {}

// Store returns the name of the store.
func (v *FakeVolumes) Store() string { return v.Home.Name }

// Await waits for a worker that runs.
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

// Begin starts a worker for a backup, which locks the container.
func (v *FakeVolumes) Begin(ctx context.Context, o volumebackup.BackupOptions, _ volumebackup.Progress) (archives.Backup, error) {
	var names []string
	for _, volume := range o.Volumes {
		names = append(names, volume.Key)
	}
	frozen, _ := json.Marshal(o.Freezes)
	journal := map[string]string{volumebackup.LabelPurpose: "create", labels.Prefix + "worker.frozen": string(frozen)}
	name := ""
	if o.Container != "" {
		name = volumebackup.LockName(o.Container)
	}
	w, err := v.launch(ctx, name, journal, names, true)
	if err != nil {
		return nil, err
	}
	return &FakeBackup{worker: w, o: o}, nil
}

// TakeLock starts workers that only hold locks. The last of them has the journal.
func (v *FakeVolumes) TakeLock(ctx context.Context, o volumebackup.LockOptions, _ volumebackup.Progress) (archives.Lock, error) {
	frozen, err := json.Marshal(o.Freezes)
	if err != nil {
		return nil, err
	}
	journal := map[string]string{volumebackup.LabelPurpose: o.Purpose, labels.Prefix + "worker.frozen": string(frozen)}
	maps.Copy(journal, o.Journal)
	l := &fakeLock{}
	own := volumebackup.JournalLock(o.Containers)
	for _, id := range slices.Compact(slices.Sorted(slices.Values(o.Containers))) {
		if name := volumebackup.LockName(id); name != own {
			w, err := v.launch(ctx, name, map[string]string{volumebackup.LabelPurpose: o.Purpose, labels.Prefix + "worker.frozen": "null"}, nil, false)
			if err != nil {
				return nil, errors.Join(err, l.Close())
			}
			l.others = append(l.others, w)
		}
	}
	w, err := v.launch(ctx, own, journal, o.Volumes, false)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.fakeWorker = w
	return l, nil
}

// OpenWorker starts a worker that mounts volumes.
func (v *FakeVolumes) OpenWorker(ctx context.Context, o volumebackup.WorkerOptions, _ volumebackup.Progress) (archives.Worker, error) {
	journal := map[string]string{volumebackup.LabelPurpose: o.Purpose, labels.Prefix + "worker.frozen": "null"}
	maps.Copy(journal, o.Journal)
	_, compares := o.Task.(volumebackup.Compare)
	if o.Once {
		w, holder, err := v.launchOnce(ctx, o.Name, journal, o.Volumes, compares, o.Make...)
		if holder != nil {
			err = &volumebackup.LockedError{Holder: holder.Name, Purpose: holder.Config.Labels[volumebackup.LabelPurpose]}
		}
		if err != nil {
			return nil, err
		}
		return w, nil
	}
	w, err := v.launch(ctx, o.Name, journal, o.Volumes, compares, o.Make...)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// OpenComparer starts a worker that compares: whole contents, as if each were one file.
func (v *FakeVolumes) OpenComparer(ctx context.Context, o volumebackup.CompareOptions, _ volumebackup.Progress) (archives.Comparer, error) {
	journal := map[string]string{volumebackup.LabelPurpose: o.Purpose, labels.Prefix + "worker.frozen": "null"}
	w, err := v.launch(ctx, "", journal, o.Volumes, true)
	if err != nil {
		return nil, err
	}
	return &fakeComparer{fakeWorker: w}, nil
}

// LoadImage makes the image of workers again.
func (v *FakeVolumes) LoadImage(ctx context.Context) error {
	return v.docker.do(ctx, "load image", func() error {
		if v.docker.FindImage(WorkerImage) == nil {
			v.docker.AddImage(WorkerImage, &container.Config{Cmd: []string{"worker"}})
		}
		return nil
	})
}
