//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// Check tells why a restore could not be done, as far as that shows without comparing. The manifest and every pack that
// it names must be there and readable. The volume, if there is one, must have room for what it lacks.
func Check(ctx context.Context, s *store.Store, o RestoreOptions) error {
	unlock, err := s.Share(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r := &restore{RestoreOptions: o, store: s}
	bytes, err := r.checkPacks(ctx)
	switch {
	case err != nil || o.Mount.Path == "" && o.Beside == "":
		return err
	case o.Mount.Path == "":
		return checkRoomBeside(o.Beside, bytes)
	}
	if r.tree, err = openTree(o.Mount.Path); err != nil {
		return err
	}
	return errors.Join(r.checkRoom(ctx, bytes), r.tree.close())
}

// checkPacks reads the manifest and the first piece in each pack. It returns how
// many bytes the archive has.
func (r *restore) checkPacks(ctx context.Context) (bytes int64, err error) {
	m, err := r.manifest()
	if err != nil {
		return 0, err
	}
	defer m.Close()
	var buffer store.Buffer
	seen := map[manifest.PackID]bool{}
	err = m.Each(func(e *manifest.Entry) error {
		for i := range e.Pieces {
			p := &e.Pieces[i]
			bytes += int64(p.Length)
			if seen[p.At.Pack] {
				continue
			}
			seen[p.At.Pack] = true
			if _, err := r.store.ReadPiece(p, e.Path, &buffer); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return 0, err
	}
	return bytes, nil
}

// checkRoom compares the size of an archive with the free space. Only if that is not enough, it adds what the volume
// holds already.
func (r *restore) checkRoom(ctx context.Context, bytes int64) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(r.tree.fd(), &st); err != nil {
		return fmt.Errorf("ask for free space: %w", err)
	}
	free := int64(st.Bfree) * int64(st.Bsize) //nolint:unconvert // narrower on 32 bits
	if bytes <= free {
		return nil
	}
	var held int64
	err := r.tree.walk(ctx, func(f *found) error {
		const block = 512 // of which stat counts
		held += f.stat.Blocks * block
		return nil
	})
	if err == nil && bytes-held > free {
		err = fmt.Errorf("it needs %d bytes more than it has, and %d are free: %w", bytes-held, free, unix.ENOSPC)
	}
	return err
}

// checkRoomBeside is checkRoom for a volume that is yet to be made, on the filesystem of path.
func checkRoomBeside(path string, bytes int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return fmt.Errorf("ask for free space: %w", err)
	}
	free := int64(st.Bfree) * int64(st.Bsize) //nolint:unconvert // narrower on 32 bits
	if bytes > free {
		return fmt.Errorf("it needs %d bytes, and %d are free: %w", bytes, free, unix.ENOSPC)
	}
	return nil
}
