package commands

import (
	"context"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// removeCopiesResult is what rm --copies prints for a snapshot.
type removeCopiesResult struct {
	Status     string `json:"status"`
	Timestamp  string `json:"timestamp"`
	ID         string `json:"id"`
	Containers words  `json:"containers"`
	Volumes    words  `json:"volumes"`
}

// runRemoveCopies removes the copies of snapshots, and goes on after an error.
func runRemoveCopies(ctx context.Context, d deps, o removeOptions, words []string) error {
	for _, word := range words {
		if err := checkSnapshot(word); err != nil {
			return err
		}
	}
	if len(words) == 0 {
		return nil
	}
	_, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (none struct{}, err error) {
		var failures []error
		for i, r := range eng.RemoveCopies(ctx, d.nameServices(ctx, eng, words), o.force, p) {
			if isNoSnapshot(r.Err) && o.force {
				failures = append(failures, o.printMissing(d, words[i], r.Err))
				continue
			}
			failures = append(failures, o.printCopies(d, r))
		}
		return none, errors.Join(failures...)
	})
	return err
}

// printCopies prints what was removed, also before an error.
func (o removeOptions) printCopies(d deps, r copies.Removed) error {
	if r.Err != nil && len(r.Containers)+len(r.Volumes) == 0 {
		return o.printer.failed(d.out, r.Err)
	}
	result := removeCopiesResult{
		Status: statusRemoved, Timestamp: rfc3339(d.clock.now()), ID: string(r.ID), Containers: newWords(r.Containers), Volumes: newWords(r.Volumes),
	}
	if o.printer.formats() {
		return errors.Join(o.printer.print(d.out, "", result), o.printer.failed(d.out, r.Err))
	}
	for _, names := range [][]string{r.Containers, r.Volumes} {
		for _, name := range names {
			if err := writeLine(d.out, name); err != nil {
				return err
			}
		}
	}
	return r.Err
}
