package volumebackup

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// The labels of a worker's container: the journal.
const (
	LabelPurpose   = labels.Prefix + "worker.purpose"   // what it is doing, for people
	labelHooks     = labels.Prefix + "worker.hooks"     // JSON list: commands that run in the captured container while it works
	labelFrozen    = labels.Prefix + "worker.frozen"    // JSON list: IDs of the containers that are paused for it
	labelKept      = labels.Prefix + "worker.kept"      // "true": the journal says more, and another process has to recover the operation
	labelOperation = labels.Prefix + "worker.operation" // random: tells which create call made it
)

// namePrefix begins the name of every worker. Whoever makes a container chooses its name; labels may come with
// somebody's image.
const namePrefix = "cua-snapshot-"

// memoryLimit is how much memory a worker may take, including the page cache that it cannot do without. The most that we
// measured is 233 MB, with a million files. Four times as much leaves room for volumes that nobody has thought of, and
// still keeps a worker from taking the machine's memory from the containers that it works for.
const memoryLimit = 1 << 30

// containerLauncher runs workers as containers on the engine.
type containerLauncher struct {
	docker  Docker
	plugin  string // its version, for the journal
	images  workerImages
	freezer dockerop.OpenFreezer // for containers that a dead worker left frozen
}

func (l *containerLauncher) launch(ctx context.Context, j job) (conn, error) {
	id, err := l.make(ctx, j)
	for tries := 1; tries < makeTries && isImageGone(err) && ctx.Err() == nil; tries++ {
		l.images.forget()
		id, err = l.make(ctx, j)
	}
	if err != nil {
		return nil, err
	}
	w := &workerConn{docker: l.docker, id: id, name: j.name, idle: j.isIdle(), detached: context.WithoutCancel(ctx), patience: min(j.wait, pausedPatience), tell: j.tell}
	if err := w.attachAndStart(ctx); err != nil {
		return nil, errors.Join(err, w.Close()) //nolint:contextcheck // the worker goes also when ctx has ended
	}
	return w, nil
}

// makeTries is how often a worker's container is made whose image disappears meanwhile. A plugin of another build removes
// our image, and may do so again: it has workers, too.
const makeTries = 4

// isImageGone tells whether a container could not be made because its image was removed after it had been found. While the
// containerd image store removes one, the image may be there already without its files.
func isImageGone(err error) bool {
	if _, noStore := errors.AsType[*NoStoreError](err); err == nil || noStore {
		return false
	}
	return cerrdefs.IsNotFound(err) || strings.Contains(err.Error(), "parent snapshot")
}

// make makes the worker's container, and its image if the engine does not have it.
func (l *containerLauncher) make(ctx context.Context, j job) (id string, err error) {
	var image string
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		image, err = l.images.ensure(callsCtx, j.tell.warn)
		return err
	})
	calls.Go(func() error { return j.findStore(callsCtx) })
	if err := calls.Wait(); err != nil {
		return "", err
	}
	config, host, err := l.configure(image, j)
	if err != nil {
		return "", err
	}
	return l.create(ctx, config, host, j)
}

// configure describes the container of a worker: no network, nothing writable
// but the mounts, nothing allowed that its job does not need.
func (l *containerLauncher) configure(image string, j job) (*container.Config, *container.HostConfig, error) {
	frozen, err := json.Marshal(j.frozen)
	if err != nil {
		return nil, nil, fmt.Errorf("write journal: %w", err)
	}
	journal := map[string]string{
		labels.KeyVersion: labels.SchemaVersion, LabelPurpose: j.purpose, labelFrozen: string(frozen), labelOperation: rand.Text(),
	}
	if len(j.hooks) > 0 {
		text, err := json.Marshal(j.hooks)
		if err != nil {
			return nil, nil, fmt.Errorf("write journal: %w", err)
		}
		journal[labelHooks] = string(text)
	}
	maps.Copy(journal, JournalLabels(l.plugin))
	if len(j.journal) > 0 {
		journal[labelKept] = "true"
		maps.Copy(journal, j.journal)
	}
	config := &container.Config{
		Image: image, User: "0:0", OpenStdin: true, StdinOnce: true,
		AttachStdin: true, AttachStdout: true, AttachStderr: true, NetworkDisabled: true,
		Labels: journal,
	}
	host := &container.HostConfig{
		NetworkMode: network.NetworkNone, ReadonlyRootfs: true,
		AutoRemove: j.name == "" && len(j.journal) == 0, // nobody would look for it: it holds no lock and has no journal
		CapDrop:    []string{"ALL"}, CapAdd: j.capabilities(),
		// label=disable: relabelling a volume of a million files takes minutes.
		SecurityOpt: []string{"no-new-privileges", "label=disable"},
		LogConfig:   container.LogConfig{Type: "none"},
		Resources:   container.Resources{Memory: memoryLimit},
	}
	if !j.rights.noStore {
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: j.store.Name, Target: "/store", ReadOnly: j.rights.keepsStore(),
			VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		})
	}
	if j.rights.freezes {
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeBind, Source: "/sys/fs/cgroup", Target: "/cgroup"})
		host.UsernsMode = "host" // the machine's own root has the control groups
	}
	if j.beside != "" {
		host.PidMode = container.PidMode("container:" + j.beside)
	}
	for _, m := range j.mounts {
		host.Mounts = append(host.Mounts, m.ofContainer())
	}
	return config, host, nil
}

// ofContainer is how the engine mounts it for a worker. Of a directory of the host, the worker sees what is mounted below
// it when it starts, and enters none of that. Nothing that is mounted later comes in, and a directory that is not there is
// not made.
func (m Mount) ofContainer() mount.Mount {
	mounted := mount.Mount{Type: mount.TypeVolume, Source: m.Volume, Target: fmt.Sprintf("/mnt/%d", m.Number), ReadOnly: m.ReadOnly}
	if labels.IsPathKey(m.Volume) {
		mounted.Type, mounted.BindOptions = mount.TypeBind, &mount.BindOptions{Propagation: mount.PropagationRPrivate}
		return mounted
	}
	mounted.VolumeOptions = &mount.VolumeOptions{NoCopy: true}
	if m.Make != nil {
		mounted.VolumeOptions.Labels = m.Make.Labels
		mounted.VolumeOptions.DriverConfig = &mount.Driver{Name: m.Make.Driver, Options: m.Make.DriverOpts}
	}
	return mounted
}
