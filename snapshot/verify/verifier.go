package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Verifier verifies snapshots. It keeps no state and may be used by several goroutines.
type Verifier struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
	random   io.Reader
}

// New returns a verifier for an engine. It reads names for its containers from random.
func New(docker *dockerop.Engine, snapshots *catalog.Catalog, held *archives.Archives, random io.Reader) *Verifier {
	return &Verifier{docker: docker, catalog: snapshots, archives: held, random: random}
}

// Verify finds out what is wrong with snapshots. The results are in the order of the words or, for
// all, newest first. An error means that nothing could be found out.
func (v *Verifier) Verify(ctx context.Context, o Options, p plan.Progress) (Report, error) {
	results, err := v.choose(ctx, o.Words)
	if err != nil {
		return Report{}, err
	}
	engine, err := v.docker.Identify(ctx)
	if err != nil {
		return Report{}, err
	}
	if err := v.checkLabels(ctx, engine, results); err != nil {
		return Report{}, err
	}
	if err := v.checkImages(ctx, engine, results, o.Quick, p); err != nil {
		return Report{}, err
	}
	found, err := v.archives.Verify(ctx, readable(results), o.Quick, p)
	if err != nil {
		return Report{}, err
	}
	for i := range results {
		r := &results[i]
		its := found.Of[r.Snapshot.ID]
		if len(r.Findings) == 0 { // the labels and the image are right
			its.Damages = v.mendRecord(ctx, r.Snapshot, its.Damages)
		}
		r.addArchives(its)
	}
	if len(o.Words) == 0 {
		if results, err = v.withoutRemoved(ctx, results, o.Quick, p); err != nil {
			return Report{}, err
		}
	}
	return Report{Results: results, Bytes: found.Bytes, More: found.More}, nil
}

// mendRecord writes a damaged record anew, and adds that to the damage. The record of a snapshot that was annotated meanwhile is
// not damaged: its labels have changed.
func (v *Verifier) mendRecord(ctx context.Context, s catalog.Snapshot, damages []volumebackup.Damage) []volumebackup.Damage {
	at := slices.IndexFunc(damages, func(d volumebackup.Damage) bool { return d.Record })
	if at < 0 {
		return damages
	}
	if now, err := v.catalog.Resolve(ctx, s.Ref()); err != nil || now.ImageID != s.ImageID {
		return slices.Delete(damages, at, at+1)
	}
	if err := v.archives.Record(ctx, s); err != nil {
		damages[at].Message += "; it could not be written anew: " + err.Error()
	} else {
		damages[at].Message += "; it was written anew from the labels"
	}
	return damages
}

// choose finds the snapshots that words name, or all.
func (v *Verifier) choose(ctx context.Context, words []string) ([]Result, error) {
	if len(words) == 0 {
		return v.all(ctx)
	}
	results := make([]Result, len(words))
	var calls errgroup.Group
	calls.SetLimit(dockerop.MaxConcurrentCalls)
	for i, word := range words {
		calls.Go(func() error {
			r := &results[i]
			r.Word = word
			r.Snapshot, r.Err = v.catalog.Resolve(ctx, word)
			if unreadable, ok := errors.AsType[*catalog.UnreadableError](r.Err); ok {
				r.Err = nil
				r.addBroken(unreadable.Err)
			}
			return v.checkTag(ctx, r)
		})
	}
	return results, calls.Wait()
}

// checkTag finds an ID whose image is not readable, or another one's. What a word does not name otherwise stays that
// word's error.
func (v *Verifier) checkTag(ctx context.Context, r *Result) error {
	if len(r.Findings) > 0 || r.Err != nil && !cerrdefs.IsNotFound(r.Err) {
		return nil
	}
	broken, err := v.catalog.Broken(ctx, r.Word, r.Snapshot)
	if broken != nil {
		r.Snapshot, r.Err = catalog.Snapshot{}, nil
		r.addBroken(broken)
	}
	return err
}

// addBroken adds what is wrong with the image that bears a snapshot's ID tag.
func (r *Result) addBroken(err error) {
	where := "labels"
	if errors.Is(err, catalog.ErrDisplaced) {
		where = "image"
	}
	r.add(where, err.Error())
}

func (v *Verifier) all(ctx context.Context) ([]Result, error) {
	found, unreadable, err := v.catalog.FindAll(ctx, catalog.Namespace+"*")
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, s := range found {
		results = append(results, Result{Word: s.Ref(), Snapshot: s})
	}
	for _, u := range unreadable {
		r := Result{Word: u.Refs[0]}
		r.addBroken(u.Err)
		results = append(results, r)
	}
	return results, nil
}

// readable returns the snapshots whose labels could be read.
func readable(results []Result) []catalog.Snapshot {
	var list []catalog.Snapshot
	for _, r := range results {
		if r.Snapshot.ID != "" {
			list = append(list, r.Snapshot)
		}
	}
	return list
}

// checkLabels finds labels that are not what this engine has sealed. Of a snapshot from elsewhere
// nobody here can tell.
func (v *Verifier) checkLabels(ctx context.Context, engine dockerop.Info, results []Result) error {
	key, err := v.catalog.KnownKey(ctx)
	if err != nil {
		return err
	}
	for i := range results {
		s := results[i].Snapshot
		if s.ID != "" && s.Parent == s.ID {
			results[i].add("labels", "it is its own parent")
		}
		if s.EngineID == engine.ID && s.Seal != "" && key != nil && !s.IsSealed(key) {
			results[i].add("labels", "they are not what this engine has sealed")
		}
	}
	return nil
}

// withoutRemoved leaves out snapshots that somebody has removed meanwhile: they are not damaged. What was annotated
// meanwhile has another image, and is looked at once more.
func (v *Verifier) withoutRemoved(ctx context.Context, results []Result, quick bool, p plan.Progress) ([]Result, error) {
	var kept []Result
	for _, r := range results {
		if r.Snapshot.ID == "" || r.Verdict() == OK {
			kept = append(kept, r)
			continue
		}
		s, err := v.catalog.Resolve(ctx, r.Snapshot.Ref())
		switch {
		case cerrdefs.IsNotFound(err):
			continue
		case err == nil && s.ID == r.Snapshot.ID && s.ImageID != r.Snapshot.ImageID:
			again, err := v.Verify(ctx, Options{Words: []string{s.Ref()}, Quick: quick}, p)
			if err != nil {
				return nil, err
			}
			r = again.Results[0]
		}
		kept = append(kept, r)
	}
	return kept, nil
}

// checkImages finds out whether each image is the one that was committed and, unless it has to be quick, whether the
// engine has every layer of it: it has to make a container of each, which never starts. That reads no layer, for which
// engines have no call.
func (v *Verifier) checkImages(ctx context.Context, engine dockerop.Info, results []Result, quick bool, p plan.Progress) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(dockerop.MaxConcurrentCalls)
	for i := range results {
		r := &results[i]
		if r.Snapshot.ID == "" {
			continue
		}
		calls.Go(func() error {
			p.Status("check", fmt.Sprintf("checking image %d of %d", i+1, len(results)))
			return v.checkImage(ctx, engine, r, quick)
		})
	}
	return calls.Wait()
}

func (v *Verifier) checkImage(ctx context.Context, engine dockerop.Info, r *Result, quick bool) error {
	image, err := v.docker.ImageInspect(ctx, r.Snapshot.ImageID)
	if cerrdefs.IsNotFound(err) || err == nil && image.Config == nil {
		r.addMissing("image", "somebody has removed it meanwhile")
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect image %s: %w", r.Snapshot.ImageID, err)
	}
	if r.Snapshot.EngineID == engine.ID && image.Comment != catalog.CommitComment(r.Snapshot.ID) {
		// An image that was built of it, or committed of a copy, has the same labels. Of other engines it is not known whether
		// the comment came along.
		r.add("image", catalog.ErrDisplaced.Error())
	}
	for _, file := range r.Snapshot.Whiteouts {
		r.addMissing("image", dockerop.DescribeWhiteout(file))
	}
	if quick || r.Snapshot.Kind == labels.KindState {
		return nil // a state has no layers
	}
	unique := make([]byte, 4) // others may verify the same snapshot
	if _, err := io.ReadFull(v.random, unique); err != nil {
		return fmt.Errorf("name a container: %w", err)
	}
	name := fmt.Sprintf("%s%s-%x", catalog.ScratchPrefix, r.Snapshot.ID, unique)
	own := map[string]string{labels.KeyVersion: labels.SchemaVersion}
	err = v.docker.WithScratch(ctx, name, r.Snapshot.ImageID, own, image.Config.Volumes, func(string) error { return nil })
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case client.IsErrConnectionFailed(err):
		return err
	case err != nil:
		r.add("image", "the engine cannot make a container of it: "+err.Error())
	}
	return nil
}

// addArchives adds what is wrong with the content of volumes.
func (r *Result) addArchives(found archives.Verified) {
	if found.Gone {
		r.addMissing("volumes", fmt.Sprintf("the store %s that held their content does not exist any more", r.Snapshot.Store))
	}
	for _, d := range found.Damages {
		where := r.where(d)
		if d.Missing {
			r.addMissing(where, "its content is not in the store")
			continue
		}
		r.add(where, d.Message)
	}
}

// where says what is damaged.
func (r *Result) where(d volumebackup.Damage) string {
	if d.Record {
		return "record"
	}
	if d.Attachment != "" {
		return "attachment " + d.Attachment
	}
	for _, m := range r.Snapshot.Mounts {
		if m.Archive != nil && m.Archive.Index == d.Archive {
			return m.Describe()
		}
	}
	return fmt.Sprintf("archive %d", d.Archive)
}
