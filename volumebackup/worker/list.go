//go:build linux

package worker

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// listBatch is how many bytes of paths, about, go into one event.
const listBatch = 64 << 10

// list sends the entries of an archive.
func (s *session) list(ctx context.Context, r protocol.ListRequest, e *exchange) (protocol.ListResult, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.ListResult{}, err
	}
	defer unlock()
	m, err := s.openArchive(r.Snapshot, r.Archive, r.Root)
	if err != nil {
		return protocol.ListResult{}, err
	}
	defer m.Close()
	summary := m.Summary()
	if err := s.sendEntries(ctx, m, r.Sums, e); err != nil {
		return protocol.ListResult{}, err
	}
	return protocol.ListResult{Root: hex.EncodeToString(summary.Root[:]), Entries: summary.Entries, Bytes: summary.Bytes}, nil
}

func (s *session) sendEntries(ctx context.Context, m *store.Manifest, sums bool, e *exchange) error {
	var batch []protocol.Entry
	size := 0
	send := func() {
		if len(batch) > 0 {
			e.emit(protocol.Event{Type: protocol.TypeEntries, Entries: batch})
		}
		batch, size = nil, 0
	}
	var buffer store.Buffer
	err := m.Each(func(entry *manifest.Entry) error {
		one := shown(entry)
		if sums && entry.Kind == manifest.Regular {
			sum, err := archive.SumOf(ctx, s.store, entry, &buffer)
			if err != nil {
				return err
			}
			one.SHA256 = hex.EncodeToString(sum[:])
		}
		batch = append(batch, one)
		size += len(entry.Path) + len(entry.Target) + 128
		if size >= listBatch {
			send()
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	send()
	return nil
}

// shown is an entry as people see it.
func shown(e *manifest.Entry) protocol.Entry {
	out := protocol.Entry{
		Path: protocol.Path(e.Path), Kind: string(rune(e.Kind)), Mode: e.Mode, UID: e.UID, GID: e.GID, Size: e.Size,
		Modified: time.Unix(e.Modified.Sec, int64(e.Modified.Nsec)).UTC(), Target: protocol.Path(e.Target),
	}
	if e.Modified.Sec > maxTime || e.Modified.Sec < minTime {
		out.Modified = time.Time{} // JSON has no such year
	}
	for _, x := range e.Xattrs {
		out.Xattrs = append(out.Xattrs, x.Name)
	}
	return out
}

// The years that RFC 3339 can express: 0 to 9999.
const (
	minTime = -62167219200
	maxTime = 253402300799
)
