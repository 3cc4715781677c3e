package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// Entry is one entry of an archive, for people.
type Entry = protocol.Entry

// Damage is one place in the store that is not what it should be.
type Damage = protocol.Damage

// Claim says whose archives are to be deleted. The ID alone would not do: any image can claim one.
type Claim = protocol.Claim

// Seen is what one image store of one engine has.
type Seen = protocol.Seen

// Removed says what a removal did.
type Removed = protocol.RemoveResult

// RemoveOptions says which archives to delete.
type RemoveOptions struct {
	Claims []Claim
	// Seen is what the engine has. Archives that belong to it, but have had no image
	// there for as long as [Config] says, are deleted as well. Nil keeps them.
	Seen *Seen
	// Volumes are all that the engine has. What the store knows of others is forgotten. Nil keeps it.
	Volumes []string
	// Now does not wait for others who use the store.
	Now bool
}

// subject is whose archives are deleted, for people.
func (o RemoveOptions) subject() string {
	switch len(o.Claims) {
	case 0:
		return "snapshots without an image"
	case 1:
		return o.Claims[0].Snapshot
	}
	return fmt.Sprintf("%d snapshots", len(o.Claims))
}

// Remove deletes archives, and frees what no other refers to.
func (s *Service) Remove(ctx context.Context, o RemoveOptions) (removed Removed, err error) {
	err = s.store.find(ctx)
	if _, none := errors.AsType[*NoStoreError](err); none {
		return Removed{}, nil // it went with all that was in it
	}
	if err != nil {
		return Removed{}, err
	}
	if s.store.isShared() { // then others know what this engine does not
		o.Seen, o.Volumes = nil, nil
	}
	err = s.alone(ctx, job{purpose: "remove " + o.subject(), rights: toTidy}, func(session *session) error {
		if o.Now {
			session.client.LockTimeout = 0
		}
		removed, err = session.client.Remove(ctx, protocol.RemoveRequest{
			Snapshots: o.Claims, Seen: o.Seen, Volumes: o.Volumes, Retention: s.lostRetention,
		}, session.emit)
		return err
	})
	if err != nil {
		return Removed{}, fmt.Errorf("remove archives of %s: %w", o.subject(), err)
	}
	return removed, nil
}

// Usage is what snapshots hold in a store.
type Usage = protocol.UsageResult

// Usage tells what the snapshots hold in the store, alone and together with others. A store that is
// gone holds nothing.
func (s *Service) Usage(ctx context.Context) (held Usage, err error) {
	err = s.store.find(ctx)
	if _, none := errors.AsType[*NoStoreError](err); none {
		return Usage{}, nil
	}
	if err != nil {
		return Usage{}, err
	}
	err = s.alone(ctx, job{purpose: "measure the store", rights: toLook}, func(session *session) error {
		held, err = session.client.Usage(ctx)
		return err
	})
	if err != nil {
		return Usage{}, fmt.Errorf("measure store %s: %w", s.store.Name, err)
	}
	return held, nil
}

// ListOptions say of which archive the entries are wanted, and whether with the SHA-256 of each file.
type ListOptions = protocol.ListRequest

// Entries hands every entry of an archive to visit, sorted by path.
func (s *Service) Entries(ctx context.Context, o ListOptions, visit func(Entry)) error {
	err := s.alone(ctx, job{purpose: "list " + o.Snapshot, rights: toLook}, func(session *session) error {
		_, err := session.client.List(ctx, o, visit)
		return err
	})
	if err != nil {
		return fmt.Errorf("list archive %d of %s: %w", o.Archive, o.Snapshot, err)
	}
	return nil
}

// Attachments calls each for every name of an attachment of a snapshot, with what reads the attachment. It does not check
// what that holds.
func (s *Service) Attachments(ctx context.Context, snapshot string, names []string, each func(name string, read func(out io.Writer) error) error) error {
	return s.alone(ctx, job{purpose: "read attachments of " + snapshot, rights: toLook}, func(session *session) error {
		for _, name := range names {
			err := each(name, func(out io.Writer) error {
				return session.client.Attachment(ctx, protocol.AttachmentRequest{Snapshot: snapshot, Name: name}, out, session.emit)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// VerifyOptions says which archives to check, and how.
type VerifyOptions = protocol.VerifyRequest

// RecordSum is the SHA-256 of the record of a snapshot with these labels.
func RecordSum(labels map[string]string) string { return protocol.RecordSum(labels) }

// VerifySnapshot names a snapshot, and the roots of its archives.
type VerifySnapshot = protocol.VerifySnapshot

// Verified says what was found.
type Verified = protocol.VerifyResult

// Verify reads the archives of snapshots, and compares every byte with its SHA-256 and every list of files with the
// root that o names. Damage is a part of the result; an error means that it could not find out.
func (s *Service) Verify(ctx context.Context, o VerifyOptions, p Progress) (found Verified, err error) {
	err = s.alone(ctx, job{purpose: fmt.Sprintf("verify %d snapshots", len(o.Snapshots)), rights: toLook, tell: p}, func(session *session) error {
		found, err = session.client.Verify(ctx, o, session.emit)
		return err
	})
	if err != nil {
		return Verified{}, fmt.Errorf("verify archives in store %s: %w", s.Store(), err)
	}
	return found, nil
}

// alone runs f with a worker that sees only the store. The worker needs no lock: the store has its own.
func (s *Service) alone(ctx context.Context, j job, f func(*session) error) error {
	session, err := s.start(ctx, j, j.tell)
	if err != nil {
		return err
	}
	err = session.explain(f(session))
	return errors.Join(err, session.Close())
}
