package archives

import (
	"context"
	"maps"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Verification is what was found about the archives of several snapshots.
type Verification struct {
	Of    map[labels.ID]Verified // what is wrong; a snapshot with nothing wrong is not in it
	Bytes int64                  // how much content was read, and found to be good
	More  int64                  // damages beyond those that are listed
}

// Verified is what is wrong with the archives of one snapshot.
type Verified struct {
	Damages []volumebackup.Damage
	Gone    bool // the store with its archives does not exist any more
}

// Verify checks the archives of snapshots, with one call for each store. With quick, no content of
// files is read. An error means that it could not find out.
func (a *Archives) Verify(ctx context.Context, list []catalog.Snapshot, quick bool, p plan.Progress) (Verification, error) {
	all := Verification{Of: map[labels.ID]Verified{}}
	stores, err := a.OwnStore(ctx)
	if err == nil {
		err = a.MarkGone(ctx, list, stores, nil)
	}
	if err != nil {
		return Verification{}, err
	}
	asked, in := map[string]*volumebackup.VerifyOptions{}, map[string]Service{}
	for _, s := range list {
		if !s.UsesStore() {
			continue
		}
		if s.Gone {
			all.Of[s.ID] = Verified{Gone: true}
			continue
		}
		its, err := a.At(ctx, s)
		if err != nil {
			return Verification{}, err
		}
		name := its.Store()
		if asked[name] == nil {
			asked[name], in[name] = &volumebackup.VerifyOptions{Quick: quick}, its
		}
		asked[name].Snapshots = append(asked[name].Snapshots, Expected(s.Labelled()))
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		found, err := in[name].Verify(ctx, *asked[name], Progress(p))
		if err != nil {
			return Verification{}, err
		}
		all.add(found)
	}
	return all, nil
}

// Expected is what the labels of a snapshot say of what the store holds for it.
func Expected(r labels.Record) volumebackup.VerifySnapshot {
	what := volumebackup.VerifySnapshot{Snapshot: string(r.ID), Roots: ClaimOf(r).Roots, Attachments: map[string]volumebackup.Attached{}}
	if own, err := labels.Encode(r); err == nil && r.Kind != labels.KindState { // a state has no record from the start
		what.Record = volumebackup.RecordSum(own)
	}
	for _, a := range r.Attachments {
		what.Attachments[a.Name] = volumebackup.Attached{Bytes: a.Bytes, SHA256: a.SHA256}
	}
	return what
}

// add adds what was found in one store.
func (all *Verification) add(found volumebackup.Verified) {
	all.Bytes += found.Bytes
	all.More += found.More
	for _, d := range found.Damages {
		of := all.Of[labels.ID(d.Snapshot)]
		of.Damages = append(of.Damages, d)
		all.Of[labels.ID(d.Snapshot)] = of
	}
}
