//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// Mode says who may be writing during a pass.
type Mode int

// The modes.
const (
	Live   Mode = iota // writers run
	Frozen             // writers are paused
	Idle               // there are no writers
)

// Mount is a volume and where it is mounted.
type Mount struct {
	Number int
	Key    string // its head is kept under it
	Path   string
	// Excluded says what is not archived, and what a restore leaves alone; nil: nothing.
	Excluded *labels.Exclusions
	Limits   Limits
}

// Backup makes one snapshot of some volumes: one pass or more, then Publish. Call Discard at the end in any case.
type Backup struct {
	store        *store.Store
	draft        *store.Draft
	index        *store.Index
	fingerprints *manifest.FingerprintKey
	volumes      []*volume
}

// volume is one volume of a backup.
type volume struct {
	Mount
	tree         *tree
	writeback    writeback
	longestWrite time.Duration
	notes        notes
	loadIndex    func() error // reads the head into the index, once
	noHead       bool         // the head is damaged
	toldLost     bool         // the reporter has heard of the head's lost packs
	read         int64        // bytes, in all passes
	needs        Needs        // of the last pass
	excluded     int64        // entries that the last pass left out

	full         bool    // the head is compared with, and not believed
	fraction     float64 // of what the head knows that is compared all the same
	counted      bool    // it is recorded when the volume was compared
	unchecked    int     // since when, in backups
	contradicted notes   // files that are not what the head says
	firstWrong   string  // the path of the one that was found first; it is noted already
	buffers      buffers
}

// Begin starts a backup.
func Begin(ctx context.Context, s *store.Store, id string, mounts []Mount) (*Backup, error) {
	return begin(ctx, longestWrite, s, id, mounts)
}

func begin(ctx context.Context, longest time.Duration, s *store.Store, id string, mounts []Mount) (_ *Backup, err error) {
	draft, err := s.Begin(ctx, id)
	if err != nil {
		return nil, err
	}
	b := &Backup{store: s, draft: draft, index: store.NewIndex()}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Discard())
		}
	}()
	if b.fingerprints, err = s.FingerprintKey(); err != nil {
		return nil, err
	}
	for _, m := range mounts {
		if err := b.add(m, longest); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *Backup) add(m Mount, longest time.Duration) error {
	t, err := openTree(m.Path)
	if err != nil {
		return fmt.Errorf("archive %s: %w", labels.DescribeKey(m.Key), err)
	}
	v := &volume{Mount: m, tree: t, longestWrite: longest}
	b.volumes = append(b.volumes, v)
	v.loadIndex = sync.OnceValue(func() error { return b.loadIndex(v) })
	v.writeback, err = writebackOf(t.fd())
	if err != nil {
		return err
	}
	return nil
}

// loadIndex enters what the volume's head refers to into the index. If the head is damaged, the backup only stores more
// than necessary.
func (b *Backup) loadIndex(v *volume) error {
	if v.noHead {
		return nil
	}
	head, err := b.store.OpenHead(v.Key)
	if err == nil && head != nil {
		err = b.index.Load(head)
		head.Close()
	}
	if isDamage(err) {
		return nil
	}
	return err
}

func isDamage(err error) bool {
	var damaged *store.DamagedError
	return errors.As(err, &damaged)
}

// PassResult says what a pass found in one volume.
type PassResult struct {
	manifest.Summary
	Mount
	Needs  Needs
	Left   int64 // entries that are excluded
	Read   int64
	Stored int64 // what the archive takes in the store by now
}

// Pass brings every archive up to date: it reads what is not as the pass before, or the head, has recorded.
func (b *Backup) Pass(ctx context.Context, mode Mode, reporter Reporter, counter *Counter) ([]PassResult, error) {
	if err := b.expect(reporter, counter); err != nil {
		return nil, err
	}
	results := make([]PassResult, 0, len(b.volumes))
	for _, v := range b.volumes {
		before := counter.Bytes.Load()
		summary, err := b.passVolume(ctx, v, mode, reporter, counter)
		if err != nil {
			return nil, fmt.Errorf("archive %s: %w", labels.DescribeKey(v.Key), err)
		}
		read := counter.Bytes.Load() - before
		v.read += read
		stored, err := b.draft.Grown(v.Number)
		if err != nil {
			return nil, fmt.Errorf("archive %s: %w", labels.DescribeKey(v.Key), err)
		}
		results = append(results, PassResult{Summary: summary, Mount: v.Mount, Needs: v.needs, Left: v.excluded, Read: read, Stored: stored})
	}
	return results, nil
}

// expect sets how much there is to read if every volume has something to compare with. While the pass goes on, unexpect
// takes off what turns out to be clean, or a hole.
func (b *Backup) expect(reporter Reporter, counter *Counter) error {
	var total int64
	for _, v := range b.volumes {
		base, err := b.base(v, reporter, counter)
		if err != nil {
			return fmt.Errorf("archive %s: %w", labels.DescribeKey(v.Key), err)
		}
		if base == nil {
			return nil
		}
		total += base.Summary().Bytes
		base.Close()
	}
	counter.Total.Store(counter.Bytes.Load() + total)
	return nil
}

func (b *Backup) passVolume(ctx context.Context, v *volume, mode Mode, reporter Reporter, counter *Counter) (manifest.Summary, error) {
	base, err := b.base(v, reporter, counter)
	if err != nil {
		return manifest.Summary{}, err
	}
	summary, err := b.passOver(ctx, v, mode, base, counter)
	if wrong, ok := asContradiction(err); ok { // the rest of the head may be as wrong
		v.contradict(wrong.path)
		v.full, v.firstWrong = true, wrong.path
		counter.Total.Store(0)
		if base, err = b.base(v, reporter, counter); err != nil {
			return manifest.Summary{}, err
		}
		summary, err = b.passOver(ctx, v, mode, base, counter)
	}
	if isDamage(err) && !v.noHead { // what was taken from the head may be wrong
		v.forgetHead(reporter, counter, err)
		summary, err = b.passOver(ctx, v, mode, nil, counter)
	}
	return summary, err
}

// base opens what the next pass compares with, or returns nil.
func (b *Backup) base(v *volume, reporter Reporter, counter *Counter) (*store.Manifest, error) {
	base, err := b.draft.Manifest(v.Number)
	if err != nil || base != nil || v.noHead {
		return base, err
	}
	base, err = b.store.OpenHead(v.Key)
	if isDamage(err) {
		v.forgetHead(reporter, counter, err)
		return nil, nil //nolint:nilnil // the pass reads everything
	}
	if base != nil {
		v.tellLost(reporter, base.LostPacks())
	}
	return base, err
}

// tellLost warns of damage in packs of earlier snapshots. The pass reads from the volume what these packs held, and
// stores it anew.
func (v *volume) tellLost(reporter Reporter, lost []*store.DamagedError) {
	if len(lost) == 0 || v.toldLost {
		return
	}
	v.toldLost = true
	what := lost[0].Error()
	if more := len(lost) - 1; more > 0 {
		what += fmt.Sprintf(" (and so are %d more)", more)
	}
	reporter.Warn(v.Number, "", what+": what the volume still holds of it is stored again; "+
		"snapshots that were taken before may not be restored completely")
}

func (v *volume) forgetHead(reporter Reporter, counter *Counter, err error) {
	v.noHead = true
	counter.Total.Store(0)
	reporter.Warn(v.Number, "", fmt.Sprintf("everything is read: %v", err))
}

func (b *Backup) passOver(ctx context.Context, v *volume, mode Mode, base *store.Manifest, counter *Counter) (manifest.Summary, error) {
	p := b.newPass(v, mode, base, counter)
	defer func() { p.base.close() }()
	kept, err := openKept(b.store, v.Excluded)
	if err != nil {
		return manifest.Summary{}, err
	}
	defer kept.close()
	p.filter = newFilter(v.Excluded, kept.has, func(path string) { p.notes.warn(path, tooLongGitignore) })
	return b.draft.WriteManifest(v.Number, func(w *manifest.Writer) error { return p.run(ctx, w) })
}

func (b *Backup) newPass(v *volume, mode Mode, base *store.Manifest, counter *Counter) *pass {
	v.notes.clear()
	v.needs, v.excluded = Needs{}, 0
	p := &pass{
		volume: v, mode: mode, store: b.store, isOwn: b.draft.IsOwn, base: newCursor(base), index: b.index, pack: b.draft.Pack(v.Number), counter: counter,
		fingerprints: b.fingerprints, links: map[uint64]string{}, gone: map[string]string{}, large: carried{short: -1},
	}
	if base != nil && !b.draft.HasManifest(v.Number) { // the pass before is believed
		p.full, p.doubted = v.full, v.fraction
	}
	return p
}

// Archive describes one archive of a new snapshot.
type Archive struct {
	store.Published
	Mount
	Skipped int64
	// Contradicted is how many files were found not to hold what the head said.
	Contradicted int64
}

// Attach puts what content gives into the snapshot, under a name that it does not have yet.
func (b *Backup) Attach(name string, content io.Reader) (store.Attached, error) {
	return b.draft.Attach(name, content)
}

// Describe says where the snapshot is from, before it is published.
func (b *Backup) Describe(o store.Origin) { b.draft.Describe(o) }

// Record says what the labels of the snapshot's image are, before it is published.
func (b *Backup) Record(labels map[string]string) { b.draft.Record(labels) }

// Publish makes the snapshot durable and visible. The reporter hears what the last pass could not capture exactly.
func (b *Backup) Publish(reporter Reporter) ([]Archive, error) {
	volumes := map[int]string{}
	for _, v := range b.volumes {
		volumes[v.Number] = v.Key
		if v.read == 0 {
			continue
		}
		// A crash must not leave a file with the times that the head has recorded but without the bytes.
		if err := unix.Syncfs(v.tree.fd()); err != nil {
			return nil, fmt.Errorf("sync %s: %w", labels.DescribeKey(v.Key), err)
		}
	}
	published, err := b.draft.Publish(volumes)
	if err != nil {
		return nil, err
	}
	archives := make([]Archive, 0, len(b.volumes))
	for _, v := range b.volumes {
		v.notes.report(reporter, v.Number)
		v.contradicted.report(reporter, v.Number)
		archives = append(archives, Archive{
			Published: published[v.Number], Mount: v.Mount, Skipped: v.notes.count, Contradicted: v.contradicted.count,
		})
	}
	return archives, b.noteChecks()
}

// Discard frees what the backup holds, and drops it unless it was published.
func (b *Backup) Discard() error {
	errs := []error{b.draft.Discard()}
	for _, v := range b.volumes {
		errs = append(errs, v.tree.close())
	}
	b.volumes = nil
	return errors.Join(errs...)
}
