//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// write takes the batches in order, stores what is new and records every entry.
func (p *pass) write(ctx context.Context, batches <-chan *batch, out *manifest.Writer) error {
	for b := range batches {
		select {
		case <-b.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, it := range b.items {
			if err := p.writeItem(it, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pass) writeItem(it *item, out *manifest.Writer) error {
	e := it.entry
	if err := p.storePieces(it); err != nil {
		return err
	}
	if it.more {
		p.carry(it)
		return nil
	}
	p.merge(it)
	p.counter.Files.Add(1)
	if why, ok := p.gone[manifest.Parent(e.Path)]; ok {
		it.leftOut = why
	}
	if why, ok := p.gone[e.Target]; ok && e.Kind == manifest.HardLink {
		it.leftOut = why
	}
	if it.leftOut != "" {
		p.leaveOut(e, it.leftOut)
		return nil
	}
	if it.short >= 0 && it.read {
		cutOff(e, it.short)
	}
	if it.changed || it.short >= 0 && it.read {
		e.Cached.Unsettled = true
		p.notes.warn(e.Path, "it changed while it was read")
	}
	p.checkExpected(it)
	return p.append(e, out)
}

func (p *pass) leaveOut(e *manifest.Entry, why string) {
	if e.Kind == manifest.Directory || e.Shared {
		p.gone[e.Path] = why
	}
	p.notes.warn(e.Path, why)
}

// append records an entry, or as much of it as an archive can hold.
func (p *pass) append(e *manifest.Entry, out *manifest.Writer) error {
	err := out.Append(e)
	if errors.Is(err, manifest.ErrUnfit) && len(e.Xattrs) > 0 {
		p.notes.warn(e.Path, fmt.Sprintf("its extended attributes are left out: %v", err))
		e.Xattrs, e.Cached.Unsettled = nil, true // it is to be told of again
		err = out.Append(e)
	}
	if errors.Is(err, manifest.ErrUnfit) {
		p.leaveOut(e, "left out: "+err.Error())
		return nil
	}
	p.needs.add(e)
	return err
}

// storePieces stores those pieces of an item that are new.
func (p *pass) storePieces(it *item) error {
	whole := it.file == nil && len(it.entry.Pieces) == 1
	for i := range it.pieces {
		piece, stored := &it.entry.Pieces[it.from+i], &it.pieces[i]
		if stored.known {
			continue
		}
		at, ok := p.index.Find(&piece.Sum) // it may have been stored since it was read
		if !ok {
			var err error
			if at, err = p.pack.Add(it.entry.Path, whole, piece, it.entry.Modified, stored.codec, stored.stored); err != nil {
				return err
			}
			p.index.Add(&piece.Sum, at)
		}
		piece.At = at
		p.buffers.put(stored.stored)
		stored.stored = nil
	}
	return nil
}

// carry keeps the state of an item of a large file for the last item of that file.
func (p *pass) carry(it *item) {
	if p.large.leftOut == "" {
		p.large.leftOut = it.leftOut
	}
	if it.short >= 0 && (p.large.short < 0 || it.short < p.large.short) {
		p.large.short = it.short
	}
}

// merge gives the last item of a large file what was carried.
func (p *pass) merge(it *item) {
	if it.file != nil {
		if p.large.leftOut != "" {
			it.leftOut = p.large.leftOut
		}
		if p.large.short >= 0 {
			it.short = p.large.short
		}
	}
	p.large = carried{short: -1}
}

// carried is state accumulated over the earlier items of the large file that is being written.
type carried struct {
	leftOut string
	short   int64
}
