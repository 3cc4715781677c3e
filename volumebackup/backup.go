package volumebackup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// BackupOptions says what to archive.
type BackupOptions struct {
	Container string   // ID of the container whose volumes they are; the lock. Empty: the caller holds a [Lock]
	Snapshot  string   // ID under which the archives are stored
	Freezes   []string // IDs of running containers that will be paused meanwhile
	Hooks     []string // commands that will run in the container meanwhile, as the engine's events have them
	Volumes   []Volume
	// Full has everything read and hashed, whatever the store says of files that seem to be unchanged.
	Full bool
	// CheckFraction is the part of such files that is compared with the store, from 0 to 1. Nil: that of the
	// [Config] in every tenth automatic backup of a volume, and none in others.
	CheckFraction *float64
	Automatic     bool // nobody has asked for this one
}

// checkEvery is how often automatic backups compare a part of a volume with what the store says.
const checkEvery = 10

// doubt says how far a backup believes the store; usual is the fraction that automatic ones check.
func (o BackupOptions) doubt(usual float64) protocol.Doubt {
	switch {
	case o.CheckFraction != nil:
		return protocol.Doubt{Full: o.Full, Fraction: *o.CheckFraction}
	case o.Automatic && !o.Full:
		return protocol.Doubt{Fraction: usual, Every: checkEvery}
	default:
		return protocol.Doubt{Full: o.Full}
	}
}

// Volume is a mount to archive: a volume, or a directory of the host that a container mounts. Its number is the archive's.
type Volume struct {
	Number int
	Key    string // identifies it, see [labels.Mount.Key]; a volume's is its name
	// Excluded says what is not archived; nil: nothing.
	Excluded *labels.Exclusions
	// Limits are how much of it is archived at most. Begin fails with a [LimitError] if it has more.
	Limits Limits
}

// Limits are how much a capture takes. Zero means no limit.
type Limits = protocol.Limits

// mount describes the volume to a worker that sees it as the mount of a number.
func (v Volume) mount(number int) protocol.Mount {
	return protocol.Mount{Number: number, Key: v.Key, Excluded: v.Excluded, Limits: v.Limits}
}

// Backup is a backup that is under way: any number of passes, each reading what changed since the one before, then
// Publish. Close ends it in any case.
type Backup struct {
	session  *session
	emit     func(protocol.Event)
	end      func() error // ends the worker, if nothing else needs it
	sweepDue bool
}

// Begin starts a worker, which locks the container, and opens a backup in it.
func (s *Service) Begin(ctx context.Context, o BackupOptions, p Progress) (*Backup, error) {
	j := job{purpose: "create " + o.Snapshot, frozen: o.Freezes, hooks: o.Hooks, rights: toCapture}
	if o.Container != "" {
		j.name = LockName(o.Container)
	}
	request := protocol.BeginRequest{Snapshot: o.Snapshot, Doubt: o.doubt(s.checkFraction)}
	for _, v := range o.Volumes {
		j.mounts = append(j.mounts, Mount{Number: v.Number, Volume: v.Key, ReadOnly: true})
		request.Mounts = append(request.Mounts, v.mount(v.Number))
	}
	session, err := s.start(ctx, j, p)
	if err != nil {
		return nil, err
	}
	b := &Backup{session: session, emit: session.emit, end: session.Close}
	if err := b.begin(ctx, request); err != nil {
		_ = session.Close()
		return nil, err
	}
	return b, nil
}

func (b *Backup) begin(ctx context.Context, r protocol.BeginRequest) error {
	if err := b.session.client.Begin(ctx, r, b.emit); err != nil {
		if large := asLimit(r, err); large != nil {
			return large
		}
		return fmt.Errorf("open backup: %w", b.session.explain(err))
	}
	return nil
}

// Close drops what was not published.
func (b *Backup) Close() error { return b.end() }

// Abandon ends the worker and leaves its container, and so the lock, to whoever recovers the operation.
func (b *Backup) Abandon() error { return b.session.Abandon() }

// Store is the name of the volume that the archives come into, and the ID that tells
// it from others of its name, if it has one.
func (b *Backup) Store() (name, id string) { return b.session.store, b.session.storeID }

// Pass reads what changed and returns what the archives are by now.
func (b *Backup) Pass(ctx context.Context, mode Mode) ([]Archive, error) {
	result, err := b.session.client.Pass(ctx, mode, b.emit)
	if err != nil {
		return nil, fmt.Errorf("read volumes: %w", b.session.explain(err))
	}
	return result.Archives, nil
}

// Attached says what came in of an attachment.
type Attached = protocol.Attached

// Attach stores what content gives with the snapshot, under a name. It fails if what has come in is not what was sent.
func (b *Backup) Attach(ctx context.Context, name string, content io.Reader) (Attached, error) {
	hash := sha256.New()
	attached, err := b.session.client.Attach(ctx, name, io.TeeReader(content, hash), b.emit)
	if err != nil {
		return Attached{}, fmt.Errorf("store attachment %s: %w", name, b.session.explain(err))
	}
	if attached.SHA256 != hex.EncodeToString(hash.Sum(nil)) {
		return Attached{}, fmt.Errorf("store attachment %s: %w", name, &protocol.Error{Class: protocol.Damaged, Message: "what came in is not what was sent"})
	}
	return attached, nil
}

// Origin says of which container, engine and image store a snapshot is.
type Origin = protocol.PublishRequest

// Publish makes the archives durable and gives them their place in the store.
func (b *Backup) Publish(ctx context.Context, o Origin) ([]Archive, error) {
	result, err := b.session.client.Publish(ctx, o, b.emit)
	if err != nil {
		return nil, fmt.Errorf("store volumes: %w", b.session.explain(err))
	}
	b.sweepDue = result.LookDue && !b.session.shared
	return result.Archives, nil
}

// SweepDue tells, once it is published, whether archives may have lost their images for
// so long that somebody should look: Remove does, if it is told what the engine has.
func (b *Backup) SweepDue() bool { return b.sweepDue }
