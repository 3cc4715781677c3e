package catalog

import (
	"context"
	"errors"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// ErrDisplaced says that the ID tag of a snapshot is on an image that is not the snapshot's.
var ErrDisplaced = errors.New("somebody has moved its tag to another image")

// displaced finds the ID tags of other snapshots on an image. s is the snapshot whose image it is, or empty.
func displaced(s Snapshot, refs []string) (all []Unreadable) {
	for _, ref := range refs {
		if id, isOurs := idTag(ref); isOurs && id != s.ID {
			all = append(all, Unreadable{Refs: []string{ref}, Err: ErrDisplaced})
		}
	}
	return all
}

// idTag is the ID that a reference ends with, if it is the ID tag of a snapshot.
func idTag(ref string) (labels.ID, bool) {
	if !strings.HasPrefix(ref, Namespace) {
		return "", false
	}
	id, err := labels.ParseID(ParseTag(ref).tag)
	return id, err == nil
}

// Broken says what is wrong with the image of a snapshot that a word names by its ID: its labels cannot be read, or it is
// [ErrDisplaced]. found is what the word names as things stand, or empty. Broken is nil if it finds nothing of the kind.
func (cat *Catalog) Broken(ctx context.Context, word string, found Snapshot) (broken, err error) {
	id, notID := labels.ParseID(word[strings.LastIndexByte(word, ':')+1:])
	if notID != nil || found.ID == id {
		return nil, nil //nolint:nilerr // the word names no snapshot by its ID
	}
	if found.ID != "" {
		if found.hasTag(string(id)) {
			broken = ErrDisplaced
		}
		return broken, nil
	}
	_, unreadable, err := cat.FindAll(ctx, Namespace+"*:"+string(id))
	if err != nil || len(unreadable) == 0 {
		return nil, err
	}
	return unreadable[0].Err, nil
}
