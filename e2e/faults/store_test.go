//go:build e2e

package faults

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/worker"
)

// askWorker has the worker's code answer in this process, with the store of the cell and folders for volumes. A worker in a
// container, as the plugin starts one, would cost a seventh of create-running/fail/20.
func (f *fixture) askWorker(volumes string, ask func(*protocol.Client) error) error {
	f.Helper()
	v, err := docker.VolumeInspect(f.Context(), f.store())
	assert.NilError(f, err)
	ours, its := net.Pipe()
	served := make(chan error, 1)
	ctx := context.WithoutCancel(f.Context())
	go func() {
		err := worker.Serve(ctx, its, its, worker.Options{StoreRoot: v.Mountpoint, MountRoot: volumes})
		served <- errors.Join(err, its.Close())
	}()
	c := protocol.NewClient(ours)
	c.LockTimeout = lockTimeout
	return errors.Join(ask(c), c.Close(), <-served)
}

// verify checks every byte of snapshots, as docker snapshot verify does.
func (f *fixture) verify(records []labels.Record) {
	f.Helper()
	var request protocol.VerifyRequest
	for _, r := range records {
		request.Snapshots = append(request.Snapshots, archives.Expected(r))
	}
	assert.NilError(f, f.askWorker("", func(c *protocol.Client) error {
		found, err := c.Verify(f.Context(), request, nil)
		assert.Check(f, found.Snapshots == len(records) || err != nil, "%d of %d snapshots were verified", found.Snapshots, len(records))
		assert.Check(f, len(found.Damages) == 0, "%+v", found.Damages)
		return err
	}))
}

// checkSnapshot restores the archives of a snapshot, and compares what comes out.
func (f *fixture) checkSnapshot(r labels.Record, want content) {
	f.Helper()
	got, volumes := content{}, f.TempDir()
	assert.NilError(f, f.askWorker(volumes, func(c *protocol.Client) error {
		for n, m := range r.Mounts {
			if m.Archive == nil {
				continue
			}
			folder := filepath.Join(volumes, strconv.Itoa(n))
			if err := os.Mkdir(folder, 0o700); err != nil {
				return err
			}
			request := protocol.RestoreRequest{
				Snapshot: string(r.ID), Archive: m.Archive.Index, Root: m.Archive.Root, Mount: protocol.Mount{Number: n, Key: filepath.Base(folder)},
			}
			if _, err := c.Restore(f.Context(), request, nil); err != nil {
				return err
			}
			got[m.Destination] = listTree(f.T, folder)
			f.checkCounts(folder)
		}
		return nil
	}))
	assert.Assert(f, len(got) > 0)
	assert.DeepEqual(f, got, want.within(got))
}

// records are what the images of these snapshots say of them.
func (f *fixture) records(ids []string) (records []labels.Record) {
	f.Helper()
	for _, i := range f.images(f.Context()) {
		r, err := labels.Decode(i.Labels)
		assert.NilError(f, err)
		if slices.Contains(ids, string(r.ID)) {
			records = append(records, r)
		}
	}
	assert.Equal(f, len(records), len(ids), "not every one of %s has an image", ids)
	return records
}
