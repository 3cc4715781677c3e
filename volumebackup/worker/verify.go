//go:build linux

package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

const (
	// maxDamages is how many damages are listed, and maxDamageBytes how long their
	// paths may be together; the others are counted.
	maxDamages     = 1000
	maxDamageBytes = 1 << 20
)

// verify checks the archives that the client names, or all.
func (s *session) verify(ctx context.Context, r protocol.VerifyRequest, e *exchange) (protocol.VerifyResult, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.VerifyResult{}, err
	}
	defer unlock()
	asked := r.Snapshots
	if len(asked) == 0 {
		ids, err := s.store.Snapshots()
		if err != nil {
			return protocol.VerifyResult{}, err
		}
		for _, id := range ids {
			asked = append(asked, protocol.VerifySnapshot{Snapshot: id})
		}
	}
	v := verification{counter: &e.counter}
	v.pieces = s.store.NewVerification(v.add)
	v.pieces.Quick = r.Quick
	for _, snapshot := range asked {
		if err := v.snapshot(ctx, s.store, snapshot); err != nil {
			return protocol.VerifyResult{}, err
		}
	}
	v.result.Bytes = v.pieces.Bytes() + v.attached
	return v.result, nil
}

// verification collects damages.
type verification struct {
	counter *archive.Counter
	pieces  *store.Verification
	id      string
	number  int

	attached int64 // bytes of attachments that were read

	mu     sync.Mutex
	result protocol.VerifyResult
	length int // of the paths in it
}

func (v *verification) snapshot(ctx context.Context, s *store.Store, asked protocol.VerifySnapshot) error {
	v.result.Snapshots++
	v.id = asked.Snapshot
	archives := make([]int, 0, len(asked.Roots))
	for n := range asked.Roots {
		archives = append(archives, n)
	}
	for _, name := range slices.Sorted(maps.Keys(asked.Attachments)) {
		if err := v.attachment(s, name, asked.Attachments[name]); err != nil {
			return err
		}
	}
	if err := v.checkRecord(s, asked.Record); err != nil {
		return err
	}
	if len(archives) == 0 && len(asked.Attachments) == 0 {
		var err error
		if archives, err = s.Archives(asked.Snapshot); err != nil {
			return v.missing(err)
		}
	}
	for _, n := range archives {
		root, err := parseRoot(asked.Roots[n])
		if err != nil {
			return err
		}
		v.number = n
		err = v.pieces.Archive(ctx, asked.Snapshot, n, root)
		if err := v.missing(err); err != nil {
			return err
		}
		v.counter.Bytes.Store(v.pieces.Bytes() + v.attached)
	}
	return nil
}

// attachment compares an attachment with what it should be.
func (v *verification) attachment(s *store.Store, name string, want protocol.Attached) error {
	read, err := s.VerifyAttachment(v.id, name, store.Attached(want), v.pieces.Quick)
	v.attached += read
	v.counter.Bytes.Store(v.pieces.Bytes() + v.attached)
	if errdefs.IsNotFound(err) {
		gone := &store.DamagedError{Pack: "snapshots/" + v.id, Offset: -1, Reason: "attachment " + name + " is missing"}
		v.record(gone, protocol.Damage{Attachment: name, Missing: true})
		return nil
	}
	if damaged, ok := errors.AsType[*store.DamagedError](err); ok {
		v.record(damaged, protocol.Damage{Attachment: name})
		return nil
	}
	return err
}

// checkRecord compares the record with the expected sum. An empty sum is not compared.
func (v *verification) checkRecord(s *store.Store, sum string) error {
	if sum == "" {
		return nil
	}
	err := s.VerifyRecord(v.id, sum)
	if damaged, ok := errors.AsType[*store.DamagedError](err); ok {
		v.record(damaged, protocol.Damage{Record: true})
		return nil
	}
	return err
}

// missing counts an archive that is not in the store as damage. It returns any other error.
func (v *verification) missing(err error) error {
	if !errdefs.IsNotFound(err) {
		return err
	}
	gone := &store.DamagedError{Pack: "snapshots/" + v.id, Offset: -1, Reason: "an archive is missing"}
	v.record(gone, protocol.Damage{Missing: true})
	return nil
}

func (v *verification) add(d *store.DamagedError) { v.record(d, protocol.Damage{}) }

// record adds a damage to the result. What damage says already is kept.
func (v *verification) record(d *store.DamagedError, damage protocol.Damage) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.length += len(d.Path); len(v.result.Damages) >= maxDamages || v.length > maxDamageBytes {
		v.result.More++
		return
	}
	damage.Snapshot, damage.Archive, damage.Path = v.id, v.number, protocol.Path(d.Path)
	damage.Pack, damage.Offset, damage.Message = d.Pack, d.Offset, d.Error()
	v.result.Damages = append(v.result.Damages, damage)
}
