package enginetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// fakeWorker is a worker at work.
type fakeWorker struct {
	service  *FakeVolumes
	id, name string
	volumes  []string
	ended    bool
}

// request runs effect for a request to the worker. It fails if the worker has ended.
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

func (w *fakeWorker) Check(ctx context.Context, t volumebackup.Target) error {
	return w.request(ctx, "check", func() error {
		return w.service.holds(t.Snapshot, t.Archive)
	})
}

// Plan finds no differences.
func (w *fakeWorker) Plan(_ context.Context, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error) {
	return make([]volumebackup.RestoreResult, len(targets)), nil
}

// Secure fails if an archive of the safety snapshot is missing, or with Rotten.
func (w *fakeWorker) Secure(ctx context.Context, now, targets []volumebackup.Target) error {
	return w.request(ctx, "secure", func() error {
		for _, t := range targets {
			at := slices.IndexFunc(now, func(n volumebackup.Target) bool { return n.Volume == t.Volume })
			if at < 0 {
				continue
			}
			if err := w.service.holds(now[at].Snapshot, now[at].Archive); err != nil {
				return err
			}
		}
		return w.service.Rotten
	})
}

// Apply writes each volume in two steps. In between it holds a mixture.
func (w *fakeWorker) Apply(ctx context.Context, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error) {
	for _, t := range targets {
		var content string
		err := w.service.locked(func() error {
			if err := w.service.holds(t.Snapshot, t.Archive); err != nil {
				return err
			}
			content = w.service.Archives[t.Snapshot][t.Archive]
			w.service.Applied[t.Volume] = t
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, state := range []string{"half of " + content, content} {
			err := w.request(ctx, "apply "+t.Volume, func() error {
				w.service.docker.setContent(t.Volume, state)
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
	name := volumebackup.SettledName(w.id)
	err := w.service.docker.ContainerRename(ctx, w.id, name)
	if c, _, inspectErr := w.service.docker.ContainerInspectWithRaw(context.WithoutCancel(ctx), w.id, false); err == nil || inspectErr == nil && c.Name == "/"+name {
		return nil
	}
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) {
		return fmt.Errorf("%w: %w", volumebackup.ErrLost, err)
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

// ends ends the worker, unless its client has been killed.
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
	attached map[string]string
}

// Attach keeps the content until the snapshot is published.
func (b *FakeBackup) Attach(ctx context.Context, name string, content io.Reader) (attached volumebackup.Attached, err error) {
	err = b.worker.request(ctx, "attach "+name, func() error {
		text, err := io.ReadAll(content)
		if b.attached == nil {
			b.attached = map[string]string{}
		}
		b.attached[name] = string(text)
		attached = volumebackup.Attached{Bytes: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256(text))}
		return err
	})
	return attached, err
}

// Pass reads the volumes.
func (b *FakeBackup) Pass(ctx context.Context, _ volumebackup.Mode) (archives []volumebackup.Archive, err error) {
	err = b.worker.request(ctx, "pass", func() error {
		b.read = nil
		b.worker.service.Read[b.o.Snapshot] = b.o.Volumes
		for _, v := range b.o.Volumes {
			content := b.worker.service.docker.contentOf(v.Key)
			b.read = append(b.read, content)
			a := volumebackup.Archive{
				Key: v.Key, Number: v.Number, Root: fmt.Sprintf("%x", sha256.Sum256([]byte(content))), Entries: 2, Bytes: int64(len(content)),
			}
			if v.Excluded != nil {
				a.Excluded = 7
			}
			archives = append(archives, a)
		}
		return nil
	})
	return archives, err
}

// Publish stores what the last pass has read.
func (b *FakeBackup) Publish(ctx context.Context, o volumebackup.Origin) ([]volumebackup.Archive, error) {
	published := make([]volumebackup.Archive, len(b.o.Volumes))
	for i := range published {
		published[i].Contradicted = b.worker.service.Contradicted
	}
	return published, b.worker.request(ctx, "publish", func() error {
		b.worker.service.Asked[b.o.Snapshot] = b.o
		b.worker.service.Archives[b.o.Snapshot] = slices.Clone(b.read)
		b.worker.service.Attached[b.o.Snapshot] = b.attached
		b.worker.service.Origins[b.o.Snapshot] = o
		b.worker.service.Homes[b.o.Snapshot] = b.worker.service.Home.Name
		return nil
	})
}

// Store returns an ID only if the test has made the volume of the store.
func (b *FakeBackup) Store() (name, id string) {
	name = b.worker.service.Store()
	if v := b.worker.service.docker.FindVolume(name); v != nil {
		id = v.Labels[labels.KeyStoreID]
	}
	return name, id
}

// SweepDue returns what the test has set.
func (b *FakeBackup) SweepDue() bool { return b.worker.service.SweepDue }

// Abandon ends the worker, and leaves its container.
func (b *FakeBackup) Abandon() error { return b.worker.Abandon() }

// Close removes the worker, unless it was lent by a restore.
func (b *FakeBackup) Close() error {
	if b.borrowed {
		return nil
	}
	return b.worker.Close()
}
